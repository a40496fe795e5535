// The template of depthwise kernels, under the rules of micro_kernel_inl.h.
// Thread safety: free functions.
#pragma once

#include "foretune/kernels/depthwise_kernel.h"
#include "foretune/kernels/internal/micro_kernel_inl.h"

namespace foretune {
namespace {

template <class Isa, int kPoints, int kVectors, bool kTail>
void depthwise_kernel(const DepthwiseCall& call) {
  using Vector = typename Isa::Vector;
  using Sums =
      Vector[std::size_t{kPoints}][std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)
  const auto mask = Isa::mask(kTail ? call.last_channels : Isa::kLanes);
  const auto load = [mask](const float* from, int vector) FORETUNE_KERNEL_INLINE {
    return kTail && vector == kVectors - 1 ? Isa::load_part(from + vector * Isa::kLanes, mask)
                                           : Isa::load(from + vector * Isa::kLanes);
  };
  Sums sums;
  FORETUNE_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    const Vector first = call.bias == nullptr ? Isa::zero() : load(call.bias, j);
    FORETUNE_UNROLL
    for (int i = 0; i < kPoints; ++i) {
      sums[i][j] = first;
    }
  }
  for (int row = 0; row < call.row_count; ++row) {
    const float* const row_input = call.input + call.rows[row].input;
    const float* const row_weights = call.weights + call.rows[row].weight;
    for (int column = 0; column < call.column_count; ++column) {
      const float* const input = row_input + call.columns[column].input;
      const float* const weights = row_weights + call.columns[column].weight;
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        const Vector weight = load(weights, j);
        FORETUNE_UNROLL
        for (int i = 0; i < kPoints; ++i) {
          sums[i][j] = Isa::fma(load(input + i * call.input_step, j), weight, sums[i][j]);
        }
      }
    }
  }
  const Vector floor = Isa::broadcast(&call.floor);
  FORETUNE_UNROLL
  for (int i = 0; i < kPoints; ++i) {
    float* const to = call.output + i * call.output_step;
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      Vector value = sums[i][j];
      if (call.addend != nullptr) {
        value = Isa::add(value, load(call.addend + i * call.output_step, j));
      }
      value = Isa::at_least(floor, value);
      if (kTail && j == kVectors - 1) {
        Isa::store_part(to + j * Isa::kLanes, mask, value);
      } else {
        Isa::store(to + j * Isa::kLanes, value);
      }
    }
  }
}

template <class Isa, int kVectors, int kPoints>
constexpr void add_depthwise_points(DepthwiseKernelSet& set) {
  if constexpr (kPoints > 0) {
    set.table[0][kVectors - 1][kPoints - 1] = &depthwise_kernel<Isa, kPoints, kVectors, false>;
    set.table[1][kVectors - 1][kPoints - 1] = &depthwise_kernel<Isa, kPoints, kVectors, true>;
    add_depthwise_points<Isa, kVectors, kPoints - 1>(set);
  }
}

template <class Isa, int kVectors = 1>
constexpr void add_depthwise_vectors(DepthwiseKernelSet& set) {
  if constexpr (kVectors <= kMaxDepthwiseVectors) {
    // Sums and one weight stay in registers.
    constexpr int kMost = (kernel_limits(Isa::kIsa).registers - 2) / kVectors;
    add_depthwise_points<Isa, kVectors,
                         (kMost < kMaxDepthwisePoints ? kMost : kMaxDepthwisePoints)>(set);
    add_depthwise_vectors<Isa, kVectors + 1>(set);
  }
}

template <class Isa>
constexpr DepthwiseKernelSet make_depthwise_kernel_set() {
  DepthwiseKernelSet set;
  set.lanes = Isa::kLanes;
  add_depthwise_vectors<Isa>(set);
  return set;
}

}  // namespace
}  // namespace foretune
