// The template of products with pruned weights, under the rules of micro_kernel_inl.h.
// Thread safety: free functions.
#pragma once

#include "foretune/kernels/internal/micro_kernel_inl.h"
#include "foretune/kernels/pruned_kernel.h"

namespace foretune {
namespace {

// kMost vectors of sums, one weight and what the compiler loads have to fit the registers.
template <class Isa, int kMost>
struct Pruned {
  using Vector = typename Isa::Vector;

  template <int kVectors>
  static void run(const PrunedStrip& strip) {
    constexpr std::size_t kSums = std::size_t{kVectors};
    const Vector floor = Isa::broadcast(&strip.floor);
    float* sums = strip.sums;
    for (std::ptrdiff_t filter = 0; filter < strip.filters; ++filter) {
      Vector sum[kSums];  // NOLINT(*-avoid-c-arrays)
      if (strip.continues) {
        FORETUNE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          sum[v] = Isa::load(sums + v * Isa::kLanes);
        }
      } else {
        const Vector first =
            strip.bias == nullptr ? Isa::zero() : Isa::broadcast(strip.bias + filter);
        FORETUNE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          sum[v] = first;
        }
      }
      const PrunedWeight* const end = strip.weights + strip.ends[filter + 1];
      for (const PrunedWeight* w = strip.weights + strip.ends[filter]; w != end; ++w) {
        const float* const from = strip.planes + w->offset;
        const Vector value = Isa::broadcast(&w->value);
        FORETUNE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          sum[v] = Isa::fma(value, Isa::load(from + v * Isa::kLanes), sum[v]);
        }
      }
      FORETUNE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Isa::store(sums + v * Isa::kLanes, Isa::at_least(floor, sum[v]));
      }
      sums += strip.filter_step;
    }
  }

  template <int kVectors>
  static constexpr void fill(PrunedKernels& kernels) {
    kernels.runs[kVectors - 1] = &run<kVectors>;
    if constexpr (kVectors > 1) {
      fill<kVectors - 1>(kernels);
    }
  }

  static constexpr PrunedKernels make() {
    PrunedKernels kernels{.lanes = Isa::kLanes, .vectors = kMost};
    fill<kMost>(kernels);
    return kernels;
  }

  static constexpr PrunedKernels kKernels = make();
};

}  // namespace
}  // namespace foretune
