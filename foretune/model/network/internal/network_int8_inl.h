// Layers with weights of 8 bits, for the network_kernels_<isa>.cc alone: see network_kernels_inl.h.
//
// An Isa has beside the operations named there: I, a vector of as many 32-bit sums as V has floats;
// Quads, as many values of four times 8 bits, and Weights, the four of an output; load_quads and
// set_weights, which make them; dot, which adds the products exactly; zero, to_float, sub, mul,
// div, least and most (the second of two where one is no number), div_where_above, which is 0 where
// the divisor is not above the third, and to_quads, which rounds four vectors of numbers to whole
// ones (ties to even) and stores them side by side. kInt8Vectors and kInt8Outputs are what a tile
// of registers holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/model/network/internal/network_kernels_inl.h"

namespace foretune {
namespace {

// One vector of candidates: their ranges, then their values.
template <class Isa, bool kArePositive>
inline void quantise(const NetworkDense& task, const float* input_scales,
                     const NetworkInt8Values& values, std::size_t lane) {
  using V = typename Isa::V;
  const auto scaled = [&](std::size_t k) {
    return Isa::mul(Isa::load(task.input + k * kNetworkLanes + lane), Isa::set(input_scales[k]));
  };
  V low = Isa::set(0);
  V high = Isa::set(0);
  for (std::size_t k = 0; k < task.inputs; ++k) {
    const V x = scaled(k);
    low = kArePositive ? low : Isa::least(x, low);
    high = Isa::most(x, high);
  }
  const V range = kArePositive ? high : Isa::sub(high, low);
  const V levels = Isa::set(kInt8Levels);
  Isa::store(values.low + lane, low);
  Isa::store(values.step + lane, Isa::div(range, levels));
  const V inverse = Isa::div_where_above(levels, range, Isa::set(kInt8LeastRange));
  for (std::size_t quad = 0; quad < network_quads(task.inputs); ++quad) {
    V four[kNetworkQuad];
    FORETUNE_UNROLL(4)
    for (std::size_t i = 0; i < kNetworkQuad; ++i) {
      // Behind the last input its own again: their weights are 0.
      const std::size_t k = quad * kNetworkQuad + i;
      const V x = scaled(k < task.inputs ? k : task.inputs - 1);
      four[i] = Isa::max0(Isa::mul(kArePositive ? x : Isa::sub(x, low), inverse));
    }
    Isa::to_quads(values.quads + (quad * kNetworkLanes + lane) * kNetworkQuad, four);
  }
}

template <class Isa, bool kArePositive, std::size_t Vectors>
inline void int8_tile(const NetworkDense& task, const NetworkInt8Weights& weights,
                      const NetworkInt8Values& values, std::size_t first, std::size_t lane) {
  using V = typename Isa::V;
  constexpr std::size_t kOutputs = Isa::kInt8Outputs;
  const std::size_t quads = network_quads(task.inputs);
  typename Isa::I sums[kOutputs][Vectors];
  FORETUNE_UNROLL(8)
  for (std::size_t o = 0; o < kOutputs; ++o) {
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      sums[o][v] = Isa::zero();
    }
  }
  const std::int8_t* weight =
      weights.quads +
      (first / kNetworkTile * kNetworkTile * quads + first % kNetworkTile) * kNetworkQuad;
  const std::uint8_t* value = values.quads + lane * kNetworkQuad;
  for (std::size_t quad = 0; quad < quads; ++quad) {
    typename Isa::Quads of_lanes[Vectors];
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      of_lanes[v] = Isa::load_quads(value + v * Isa::kWidth * kNetworkQuad);
    }
    FORETUNE_UNROLL(8)
    for (std::size_t o = 0; o < kOutputs; ++o) {
      const typename Isa::Weights of_output = Isa::set_weights(weight + o * kNetworkQuad);
      FORETUNE_UNROLL(8)
      for (std::size_t v = 0; v < Vectors; ++v) {
        sums[o][v] = Isa::dot(sums[o][v], of_lanes[v], of_output);
      }
    }
    value += kNetworkLanes * kNetworkQuad;
    weight += kNetworkTile * kNetworkQuad;
  }
  FORETUNE_UNROLL(8)
  for (std::size_t o = 0; o < kOutputs; ++o) {
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      const std::size_t column = lane + v * Isa::kWidth;
      const V of_step = Isa::mul(Isa::load(values.step + column), Isa::to_float(sums[o][v]));
      const V whole = kArePositive ? of_step
                                   : Isa::fma(Isa::load(values.low + column),
                                              Isa::set(weights.sums[first + o]), of_step);
      finish<Isa>(
          task, first + o, column,
          Isa::fma(Isa::set(weights.steps[first + o]), whole, Isa::set(task.bias[first + o])));
    }
  }
}

template <class Isa, bool kArePositive, std::size_t Vectors>
inline void int8_columns(const NetworkDense& task, const NetworkInt8Weights& weights,
                         const NetworkInt8Values& values, std::size_t lane) {
  for (std::size_t first = 0; first < network_padded(task.outputs); first += Isa::kInt8Outputs) {
    int8_tile<Isa, kArePositive, Vectors>(task, weights, values, first, lane);
  }
}

template <class Isa, bool kArePositive>
inline void int8_layer(const NetworkDense& task, const NetworkInt8Weights& weights,
                       const NetworkInt8Values& values) {
  for (std::size_t lane = 0; lane < task.lanes; lane += Isa::kWidth) {
    quantise<Isa, kArePositive>(task, weights.input_scales, values, lane);
  }
  constexpr std::size_t kColumns = Isa::kInt8Vectors * Isa::kWidth;
  for (std::size_t lane = 0; lane < task.lanes; lane += kColumns) {
    const std::size_t vectors = (task.lanes - lane + Isa::kWidth - 1) / Isa::kWidth;
    if (vectors == 1) {
      int8_columns<Isa, kArePositive, 1>(task, weights, values, lane);
    } else if (vectors == 2 && Isa::kInt8Vectors > 2) {
      int8_columns<Isa, kArePositive, 2>(task, weights, values, lane);
    } else {
      int8_columns<Isa, kArePositive, Isa::kInt8Vectors>(task, weights, values, lane);
    }
  }
}

template <class Isa>
void dense_int8(const NetworkDense& task, const NetworkInt8Weights& weights,
                const NetworkInt8Values& values) {
  if (values.are_positive) {
    int8_layer<Isa, true>(task, weights, values);
  } else {
    int8_layer<Isa, false>(task, weights, values);
  }
}

// Returns the kernels made of an instruction set's operations.
template <class Isa>
const NetworkKernels* kernels_of() {
  static constexpr NetworkKernels kKernels{Isa::kName, &dense<Isa>, &dense_int8<Isa>, &towers<Isa>};
  return &kKernels;
}

}  // namespace
}  // namespace foretune
