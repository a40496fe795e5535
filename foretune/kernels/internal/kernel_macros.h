// How kernels are compiled. Thread safety: macros only.
#pragma once

#define FORETUNE_KERNEL_INLINE __attribute__((always_inline))

// Loops over registers must be unrolled whole, since an array indexed by a variable lives in
// memory.
#define FORETUNE_UNROLL _Pragma("GCC unroll 16")
