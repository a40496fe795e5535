// The one micro-kernel template, included once by each instruction set's file, which passes its
// vector operations as `Isa`. Everything is in an unnamed namespace and calls nothing of the
// standard library: an inline function compiled here with wide instructions must never be the copy
// that the linker keeps for the rest of the program.
// Thread safety: free functions.
#pragma once

#include <cstddef>

#include "foretune/kernels/micro_kernel.h"

#define FORETUNE_KERNEL_INLINE __attribute__((always_inline))

namespace foretune {
namespace {

template <int kValue>
struct Index {
  static constexpr int value = kValue;
};

// body(Index<0>), ..., body(Index<kCount - 1>): loops over registers must be unrolled in the
// source, since an array indexed by a variable lives in memory.
template <int kCount, int kFirst = 0, class Body>
FORETUNE_KERNEL_INLINE inline void repeat(const Body& body) {
  if constexpr (kFirst < kCount) {
    body(Index<kFirst>{});
    repeat<kCount, kFirst + 1>(body);
  }
}

template <class Isa, int kRows, int kVectors, bool kPackedA, bool kTail>
struct Block {
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;

  Vector sums[std::size_t{kRows}][std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)

  template <int kVector>
  FORETUNE_KERNEL_INLINE static Vector load(const float* row, Mask mask) {
    if constexpr (kTail && kVector == kVectors - 1) {
      return Isa::load_part(row + kVector * Isa::kLanes, mask);
    } else {
      return Isa::load(row + kVector * Isa::kLanes);
    }
  }

  template <int kVector>
  FORETUNE_KERNEL_INLINE static void store(float* row, Mask mask, Vector value) {
    if constexpr (kTail && kVector == kVectors - 1) {
      Isa::store_part(row + kVector * Isa::kLanes, mask, value);
    } else {
      Isa::store(row + kVector * Isa::kLanes, value);
    }
  }

  FORETUNE_KERNEL_INLINE void multiply(const MicroKernelCall& call, Mask mask) {
    repeat<kRows>([&](auto i) FORETUNE_KERNEL_INLINE {
      repeat<kVectors>([&](auto j)
                           FORETUNE_KERNEL_INLINE { sums[i.value][j.value] = Isa::zero(); });
    });
    const float* a = call.a;
    const float* b = call.b;
    const std::ptrdiff_t b_stride = call.b_stride;
    const std::ptrdiff_t a_stride = kPackedA ? 1 : call.a_row_stride;
    for (std::ptrdiff_t p = call.k; p > 0; --p) {
      if constexpr (kVectors <= kRows) {
        Vector row[std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)
        repeat<kVectors>([&](auto j)
                             FORETUNE_KERNEL_INLINE { row[j.value] = load<j.value>(b, mask); });
        repeat<kRows>([&](auto i) FORETUNE_KERNEL_INLINE {
          const Vector factor = Isa::broadcast(a + i.value * a_stride);
          repeat<kVectors>([&](auto j) FORETUNE_KERNEL_INLINE {
            sums[i.value][j.value] = Isa::fma(factor, row[j.value], sums[i.value][j.value]);
          });
        });
      } else {
        Vector factors[std::size_t{kRows}];  // NOLINT(modernize-avoid-c-arrays)
        repeat<kRows>([&](auto i) FORETUNE_KERNEL_INLINE {
          factors[i.value] = Isa::broadcast(a + i.value * a_stride);
        });
        repeat<kVectors>([&](auto j) FORETUNE_KERNEL_INLINE {
          const Vector row = load<j.value>(b, mask);
          repeat<kRows>([&](auto i) FORETUNE_KERNEL_INLINE {
            sums[i.value][j.value] = Isa::fma(factors[i.value], row, sums[i.value][j.value]);
          });
        });
      }
      a += kPackedA ? kRows : 1;
      b += b_stride;
    }
  }

  FORETUNE_KERNEL_INLINE void finish(const MicroKernelCall& call, Mask mask) {
    const Vector alpha = Isa::broadcast(&call.alpha);
    const bool reads_c = call.beta != 0.0F;
    const Vector beta = Isa::broadcast(&call.beta);
    repeat<kRows>([&](auto i) FORETUNE_KERNEL_INLINE {
      float* out = call.c + i.value * call.c_stride;
      if (reads_c) {
        const float* in = call.c_in + i.value * call.c_in_stride;
        repeat<kVectors>([&](auto j) FORETUNE_KERNEL_INLINE {
          const Vector scaled = Isa::multiply(alpha, sums[i.value][j.value]);
          store<j.value>(out, mask, Isa::fma(beta, load<j.value>(in, mask), scaled));
        });
      } else {
        repeat<kVectors>([&](auto j) FORETUNE_KERNEL_INLINE {
          store<j.value>(out, mask, Isa::multiply(alpha, sums[i.value][j.value]));
        });
      }
    });
  }
};

template <class Isa, int kRows, int kVectors, bool kPackedA, bool kTail>
void micro_kernel(const MicroKernelCall& call) {
  const typename Isa::Mask mask = Isa::mask(kTail ? call.last_columns : Isa::kLanes);
  Block<Isa, kRows, kVectors, kPackedA, kTail> block;
  block.multiply(call, mask);
  block.finish(call, mask);
}

template <class Isa, int kRows, int kVectors>
constexpr void add_shape(KernelSet& set) {
  set.table[0][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, false>;
  set.table[1][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, false>;
  set.table[0][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, true>;
  set.table[1][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, true>;
}

template <class Isa, int kVectors, int kRows>
constexpr void add_rows(KernelSet& set) {
  if constexpr (kRows > 0) {
    add_shape<Isa, kRows, kVectors>(set);
    add_rows<Isa, kVectors, kRows - 1>(set);
  }
}

template <class Isa, int kVectors = 1>
constexpr void add_vectors(KernelSet& set) {
  if constexpr (kVectors <= kMaxKernelVectors) {
    add_rows<Isa, kVectors, max_kernel_rows(Isa::kIsa, kVectors)>(set);
    add_vectors<Isa, kVectors + 1>(set);
  }
}

template <class Isa>
constexpr KernelSet make_kernel_set() {
  KernelSet set;
  set.isa = Isa::kIsa;
  static_assert(Isa::kLanes == kernel_limits(Isa::kIsa).lanes);
  set.lanes = Isa::kLanes;
  add_vectors<Isa>(set);
  return set;
}

}  // namespace
}  // namespace foretune
