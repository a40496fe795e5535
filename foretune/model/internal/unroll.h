// FORETUNE_UNROLL(8) stands before a loop over vectors that must stay in registers. Internal to the
// kernels of forests and networks. Nothing but macros, because files for all instruction sets
// include it.
#pragma once

// Sanitized code is not unrolled, and g++ warns of every wish that it ignores.
#define FORETUNE_PRAGMA(text) _Pragma(#text)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORETUNE_UNROLL(count)
#else
#define FORETUNE_UNROLL(count) FORETUNE_PRAGMA(GCC unroll count)
#endif
