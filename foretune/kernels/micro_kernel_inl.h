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

// Loops over registers must be unrolled whole, since an array indexed by a variable lives in
// memory.
#define FORETUNE_UNROLL _Pragma("GCC unroll 16")

template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail, KernelLoop kLoop>
struct Block {
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;
  using Sums =
      Vector[std::size_t{kRows}][std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)

  FORETUNE_KERNEL_INLINE static Vector load(const float* row, int vector, Mask mask) {
    return kTail && vector == kVectors - 1 ? Isa::load_part(row + vector * Isa::kLanes, mask)
                                           : Isa::load(row + vector * Isa::kLanes);
  }

  FORETUNE_KERNEL_INLINE static void store(float* row, int vector, Mask mask, Vector value) {
    if (kTail && vector == kVectors - 1) {
      Isa::store_part(row + vector * Isa::kLanes, mask, value);
    } else {
      Isa::store(row + vector * Isa::kLanes, value);
    }
  }

  // One column of A times one row of B.
  FORETUNE_KERNEL_INLINE static void step(const float* a, std::ptrdiff_t a_stride, const float* b,
                                          Mask mask, Sums& sums) {
    const std::ptrdiff_t row_stride = kByColumns ? 1 : a_stride;
    if constexpr (kVectors <= kRows) {
      Vector row[std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        row[j] = load(b, j, mask);
      }
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const Vector factor = Isa::broadcast(a + i * row_stride);
        FORETUNE_UNROLL
        for (int j = 0; j < kVectors; ++j) {
          Isa::accumulate(sums[i][j], factor, row[j]);
        }
      }
    } else {
      Vector factors[std::size_t{kRows}];  // NOLINT(modernize-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        factors[i] = Isa::broadcast(a + i * row_stride);
      }
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        const Vector row = load(b, j, mask);
        FORETUNE_UNROLL
        for (int i = 0; i < kRows; ++i) {
          Isa::accumulate(sums[i][j], factors[i], row);
        }
      }
    }
  }

  FORETUNE_KERNEL_INLINE static void multiply(const MicroKernelCall& call, Mask mask, Sums& sums) {
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        if constexpr (Isa::kMath == KernelMath::kI8Quads) {
          sums[i][j] = load(call.b, j, mask);
        } else {
          sums[i][j] = Isa::zero();
        }
      }
    }
    const float* a = call.a;
    const float* b = call.b;
    if constexpr (Isa::kMath == KernelMath::kI8Quads) {
      b += call.b_stride;
    }
    const std::ptrdiff_t a_step = kByColumns ? call.a_stride : 1;
    std::ptrdiff_t steps = call.k;
    if constexpr (kLoop == KernelLoop::kUnrolled) {
      for (; steps >= 4; steps -= 4) {
        FORETUNE_UNROLL
        for (int u = 0; u < 4; ++u) {
          step(a, call.a_stride, b, mask, sums);
          a += a_step;
          b += call.b_stride;
        }
      }
    }
    const std::ptrdiff_t ahead = call.rows_ahead * call.b_stride;
    for (; steps > 0; --steps) {
      if constexpr (kLoop == KernelLoop::kPrefetching) {
        // A hint never faults, so the rows behind the last one need no exception.
        FORETUNE_UNROLL
        for (int j = 0; j < kVectors; ++j) {
          __builtin_prefetch(b + ahead + j * Isa::kLanes, 0, 3);
        }
      }
      step(a, call.a_stride, b, mask, sums);
      a += a_step;
      b += call.b_stride;
    }
  }

  FORETUNE_KERNEL_INLINE static void prefetch_c(const MicroKernelCall& call) {
    constexpr int kLineFloats = 16;
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* row = call.c + i * call.c_stride;
      FORETUNE_UNROLL
      for (int at = 0; at < kVectors * Isa::kLanes; at += kLineFloats) {
        __builtin_prefetch(row + at, 1, 3);
      }
    }
  }

  template <bool kScaled, bool kAdds>
  FORETUNE_KERNEL_INLINE static void store_sums(const MicroKernelCall& call, Mask mask,
                                                const Sums& sums) {
    const Vector alpha = Isa::broadcast(&call.alpha);
    const Vector beta = Isa::broadcast(&call.beta);
    const Vector floor = Isa::broadcast(&call.floor);
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* in = kAdds ? call.c_in + i * call.c_in_stride : nullptr;
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        Vector value = sums[i][j];
        if constexpr (kScaled) {
          value = Isa::multiply(alpha, value);
        }
        if constexpr (kAdds) {
          value = kScaled ? Isa::fma(beta, load(in, j, mask), value)
                          : Isa::add(load(in, j, mask), value);
        }
        if constexpr (kScaled) {
          value = Isa::at_least(floor, value);
        }
        store(call.c + i * call.c_stride, j, mask, value);
      }
    }
  }

  FORETUNE_KERNEL_INLINE static void finish(const MicroKernelCall& call, Mask mask,
                                            const Sums& sums) {
    if constexpr (Isa::kMath == KernelMath::kI8Quads || Isa::kMath == KernelMath::kI16Pairs) {
      if (call.beta == 0.0F) {
        store_sums<false, false>(call, mask, sums);
      } else {
        store_sums<false, true>(call, mask, sums);
      }
    } else {
      // Scaling and the floor occupy the units of the multiply-adds: left out where they change
      // nothing, which shows in products of little depth.
      const bool is_plain = call.alpha == 1.0F && call.floor == -__builtin_inff();
      if (call.beta == 0.0F) {
        if (is_plain) {
          store_sums<false, false>(call, mask, sums);
        } else {
          store_sums<true, false>(call, mask, sums);
        }
      } else if (is_plain && call.beta == 1.0F) {
        store_sums<false, true>(call, mask, sums);
      } else {
        store_sums<true, true>(call, mask, sums);
      }
    }
  }
};

template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail, KernelLoop kLoop>
void micro_kernel(const MicroKernelCall& call) {
  using Registers = Block<Isa, kRows, kVectors, kByColumns, kTail, kLoop>;
  const typename Isa::Mask mask = Isa::mask(kTail ? call.last_columns : Isa::kLanes);
  if (call.prefetch_c) {
    Registers::prefetch_c(call);
  }
  typename Registers::Sums sums;
  Registers::multiply(call, mask, sums);
  Registers::finish(call, mask, sums);
}

// How many floats ahead dot kernels fetch.
constexpr std::ptrdiff_t kDotAhead = 512;

template <class Isa, int kRows, int kColumns>
struct DotBlock {
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;
  using Sums =
      Vector[std::size_t{kRows}][std::size_t{kColumns}];  // NOLINT(modernize-avoid-c-arrays)

  template <bool kPart>
  FORETUNE_KERNEL_INLINE static void step(const MicroKernelCall& call, std::ptrdiff_t p, Mask mask,
                                          Sums& sums) {
    Vector columns[std::size_t{kColumns}];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      const float* from = call.b + j * call.b_stride + p;
      columns[j] = kPart ? Isa::load_part(from, mask) : Isa::load(from);
    }
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* from = call.a + i * call.a_stride + p;
      const Vector row = kPart ? Isa::load_part(from, mask) : Isa::load(from);
      FORETUNE_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        sums[i][j] = Isa::fma(row, columns[j], sums[i][j]);
      }
    }
  }

  // The whole vectors of the depth; returns where they end. Rows of A that are read once and come
  // from afar begin on pages of their own, where the hardware has to notice again what is going on:
  // with kFetches they are asked for ahead.
  template <bool kFetches>
  FORETUNE_KERNEL_INLINE static std::ptrdiff_t multiply(const MicroKernelCall& call, Sums& sums) {
    const Mask all = Isa::mask(Isa::kLanes);
    std::ptrdiff_t p = 0;
    for (; p + Isa::kLanes <= call.k; p += Isa::kLanes) {
      if constexpr (kFetches) {
        FORETUNE_UNROLL
        for (int i = 0; i < kRows; ++i) {
          __builtin_prefetch(call.a + i * call.a_stride + p + kDotAhead, 0, 3);
        }
      }
      step<false>(call, p, all, sums);
    }
    return p;
  }

  FORETUNE_KERNEL_INLINE static void finish(const MicroKernelCall& call, const Sums& sums) {
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      FORETUNE_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        float value = call.alpha * Isa::sum(sums[i][j]);
        if (call.beta != 0.0F) {
          value += call.beta * call.c_in[i * call.c_in_stride + j];
        }
        call.c[i * call.c_stride + j] = value < call.floor ? call.floor : value;
      }
    }
  }
};

template <class Isa, int kRows, int kColumns>
void dot_kernel(const MicroKernelCall& call) {
  using Registers = DotBlock<Isa, kRows, kColumns>;
  typename Registers::Sums sums;
  FORETUNE_UNROLL
  for (int i = 0; i < kRows; ++i) {
    FORETUNE_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      sums[i][j] = Isa::zero();
    }
  }
  const std::ptrdiff_t p = call.prefetch_a ? Registers::template multiply<true>(call, sums)
                                           : Registers::template multiply<false>(call, sums);
  if (p < call.k) {
    Registers::template step<true>(call, p, Isa::mask(static_cast<int>(call.k - p)), sums);
  }
  Registers::finish(call, sums);
}

template <class Isa, int kColumns, int kRows>
constexpr void add_dot_rows(KernelSet& set) {
  if constexpr (kRows > 0) {
    set.dot_table[kColumns - 1][kRows - 1] = &dot_kernel<Isa, kRows, kColumns>;
    add_dot_rows<Isa, kColumns, kRows - 1>(set);
  }
}

template <class Isa, int kColumns = 1>
constexpr void add_dot_kernels(KernelSet& set) {
  if constexpr (kColumns <= kMaxDotColumns) {
    add_dot_rows<Isa, kColumns, max_dot_rows(Isa::kIsa, kColumns)>(set);
    add_dot_kernels<Isa, kColumns + 1>(set);
  }
}

template <class Isa, int kRows, int kVectors, KernelLoop kLoop>
constexpr void add_loop(KernelSet& set) {
  auto& of_loop = set.table[static_cast<int>(kLoop)];
  of_loop[0][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, false, kLoop>;
  of_loop[1][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, false, kLoop>;
  of_loop[0][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, true, kLoop>;
  of_loop[1][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, true, kLoop>;
}

template <class Isa, int kRows, int kVectors>
constexpr void add_shape(KernelSet& set) {
  if constexpr (Isa::kMath != KernelMath::kF32) {
    auto& panels = set.table[static_cast<int>(KernelLoop::kPlain)][1];
    panels[0][kVectors - 1][kRows - 1] =
        &micro_kernel<Isa, kRows, kVectors, true, false, KernelLoop::kPlain>;
    panels[1][kVectors - 1][kRows - 1] =
        &micro_kernel<Isa, kRows, kVectors, true, true, KernelLoop::kPlain>;
  } else {
    add_loop<Isa, kRows, kVectors, KernelLoop::kPlain>(set);
    add_loop<Isa, kRows, kVectors, KernelLoop::kUnrolled>(set);
    add_loop<Isa, kRows, kVectors, KernelLoop::kPrefetching>(set);
  }
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
  set.math = Isa::kMath;
  static_assert(Isa::kLanes == kernel_limits(Isa::kIsa).lanes);
  set.lanes = Isa::kLanes;
  add_vectors<Isa>(set);
  if constexpr (Isa::kMath == KernelMath::kF32) {
    add_dot_kernels<Isa>(set);
  }
  return set;
}

}  // namespace
}  // namespace foretune
