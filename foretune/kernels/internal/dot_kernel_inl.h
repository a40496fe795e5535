// The kernels whose vectors lie along k, under the rules of micro_kernel_inl.h.
// Thread safety: free functions.
#pragma once

#include <cstddef>

#include "foretune/kernels/internal/kernel_macros.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

// The number of floats that dot kernels fetch ahead.
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
        if constexpr (kRows == 1) {
          sums[i][j] = Isa::fma(row, columns[j], sums[i][j]);
        } else {
          Isa::accumulate(sums[i][j], row, columns[j]);
        }
      }
    }
  }

  // Multiplies the whole vectors of the depth; returns where they end. Rows of A that are read once
  // and come from afar begin on pages of their own, where the hardware prefetcher has to start
  // again: with kFetches they are prefetched.
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

  FORETUNE_KERNEL_INLINE static Vector sum(const Sums& sums, int at) {
    return at < kRows * kColumns ? sums[at / kColumns][at % kColumns] : Isa::zero();
  }

  // Adds up four sums across their lanes together, with half the shuffles of four separate
  // additions.
  FORETUNE_KERNEL_INLINE static void finish(const MicroKernelCall& call, const Sums& sums) {
    constexpr int kPadded = (kRows * kColumns + 3) / 4 * 4;
    alignas(16) float totals[std::size_t{kPadded}];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int at = 0; at < kPadded; at += 4) {
      Isa::sum_four(sum(sums, at), sum(sums, at + 1), sum(sums, at + 2), sum(sums, at + 3),
                    totals + at);
    }
    // Scaling element by element would take as long as summing does.
    const bool is_plain =
        call.alpha == 1.0F && call.beta == 0.0F && call.floor == -__builtin_inff();
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float* const to = call.c + i * call.c_stride;
      if (is_plain) {
        __builtin_memcpy(to, totals + i * kColumns, kColumns * sizeof(float));
        continue;
      }
      for (int j = 0; j < kColumns; ++j) {
        float value = call.alpha * totals[i * kColumns + j];
        if (call.beta != 0.0F) {
          value += call.beta * call.c_in[i * call.c_in_stride + j];
        }
        to[j] = value < call.floor ? call.floor : value;
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

}  // namespace
}  // namespace foretune
