// The multiply-add loop, compiled once per instruction set with that set's vector type.
#pragma once

#include <cstddef>

#include "foretune/hardware/peak_probes.h"

namespace foretune::hardware_internal {
namespace {

// GCC's vector extension: the compiler maps it to whole registers of the file's instruction set.
template <int kLanes>
struct Vector {
  using Type [[gnu::vector_size(kLanes * sizeof(float))]] = float;
};

template <int kLanes, std::size_t kAccumulators>
double fma_probe(std::size_t rounds) {
  using V = typename Vector<kLanes>::Type;
  V sums[kAccumulators];  // NOLINT(modernize-avoid-c-arrays): an array of register variables
  V factor;
  V term;
  for (int lane = 0; lane < kLanes; ++lane) {
    factor[lane] = 0.999F;
    term[lane] = 1e-3F;
  }
  for (std::size_t i = 0; i < kAccumulators; ++i) {
    sums[i] = term * static_cast<float>(i + 1);
  }
  // Opaque to the optimiser: the constants could be anything.
  __asm__ volatile("" : "+m"(factor), "+m"(term));
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (std::size_t i = 0; i < kAccumulators; ++i) {
      sums[i] = sums[i] * factor + term;
    }
  }
  double total = 0;
  for (const V& sum : sums) {
    for (int lane = 0; lane < kLanes; ++lane) {
      total += static_cast<double>(sum[lane]);
    }
  }
  return total;
}

}  // namespace
}  // namespace foretune::hardware_internal
