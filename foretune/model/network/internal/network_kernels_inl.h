// The code of the networks that all instruction sets share. Only the network_kernels_<isa>.cc
// include it, and each provides an Isa with the few operations that differ. Everything has internal
// linkage and nothing of the standard library is instantiated: code compiled for one instruction
// set must never be merged with another's.
//
// An Isa has a vector type V of kWidth floats, the number of vectors and of outputs that a tile of
// registers holds, and load, store, set (of one number to all lanes), add, max0, and fma.
// network_int8_inl.h lists its members for weights of 8 bits.
#pragma once

#include <cstddef>

#include "foretune/model/internal/unroll.h"
#include "foretune/model/network/internal/network_kernels.h"

namespace foretune {
namespace {

// Applies skip connection, rectifier, scale and shift to an output's sums and stores them.
template <class Isa>
inline void finish(const NetworkDense& task, std::size_t output, std::size_t lane,
                   typename Isa::V sum) {
  const std::size_t at = output * kNetworkLanes + lane;
  sum = task.skip == nullptr ? sum : Isa::add(sum, Isa::load(task.skip + at));
  sum = task.is_rectified ? Isa::max0(sum) : sum;
  if (task.scale != nullptr) {
    sum = Isa::fma(sum, Isa::set(task.scale[output]), Isa::set(task.shift[output]));
  }
  Isa::store(task.output + at, sum);
}

// Computes `Vectors` vectors from column `lane` on, for `Isa::kOutputs` outputs from row `first`
// on.
template <class Isa, std::size_t Vectors>
inline void dense_tile(const NetworkDense& task, std::size_t first, std::size_t lane) {
  using V = typename Isa::V;
  constexpr std::size_t kOutputs = Isa::kOutputs;
  V sums[kOutputs][Vectors];
  FORETUNE_UNROLL(8)
  for (std::size_t o = 0; o < kOutputs; ++o) {
    const V bias = Isa::set(task.bias[first + o]);
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      const std::size_t at = (first + o) * kNetworkLanes + lane + v * Isa::kWidth;
      sums[o][v] = task.initial == nullptr ? bias : Isa::add(bias, Isa::load(task.initial + at));
    }
  }
  const float* weights =
      task.weights + first / kNetworkTile * kNetworkTile * task.inputs + first % kNetworkTile;
  const float* input = task.input + lane;
  for (std::size_t k = 0; k < task.inputs; ++k) {
    V values[Vectors];
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      values[v] = Isa::load(input + v * Isa::kWidth);
    }
    FORETUNE_UNROLL(8)
    for (std::size_t o = 0; o < kOutputs; ++o) {
      const V weight = Isa::set(weights[o]);
      FORETUNE_UNROLL(8)
      for (std::size_t v = 0; v < Vectors; ++v) {
        sums[o][v] = Isa::fma(values[v], weight, sums[o][v]);
      }
    }
    input += kNetworkLanes;
    weights += kNetworkTile;
  }
  FORETUNE_UNROLL(8)
  for (std::size_t o = 0; o < kOutputs; ++o) {
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < Vectors; ++v) {
      finish<Isa>(task, first + o, lane + v * Isa::kWidth, sums[o][v]);
    }
  }
}

template <class Isa, std::size_t Vectors>
inline void dense_columns(const NetworkDense& task, std::size_t lane) {
  for (std::size_t first = 0; first < network_padded(task.outputs); first += Isa::kOutputs) {
    dense_tile<Isa, Vectors>(task, first, lane);
  }
}

template <class Isa>
void dense(const NetworkDense& task) {
  constexpr std::size_t kColumns = Isa::kVectors * Isa::kWidth;
  for (std::size_t lane = 0; lane < task.lanes; lane += kColumns) {
    const std::size_t vectors = (task.lanes - lane + Isa::kWidth - 1) / Isa::kWidth;
    if (vectors == 1) {
      dense_columns<Isa, 1>(task, lane);
    } else if (vectors == 2 && Isa::kVectors > 2) {
      dense_columns<Isa, 2>(task, lane);
    } else {
      dense_columns<Isa, Isa::kVectors>(task, lane);
    }
  }
}

template <class Isa>
void towers(const NetworkTowers& task) {
  using V = typename Isa::V;
  constexpr std::size_t kVectors = kNetworkLanes / Isa::kWidth;
  const float* own = task.config + (task.dot + task.hidden) * kNetworkLanes;
  V sums[kVectors];
  FORETUNE_UNROLL(8)
  for (std::size_t v = 0; v < kVectors; ++v) {
    sums[v] = Isa::load(own + v * Isa::kWidth);
  }
  const float* config = task.config;
  for (std::size_t i = 0; i < task.dot; ++i) {
    const V value = Isa::set(task.problem[i]);
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[v] = Isa::fma(value, Isa::load(config + v * Isa::kWidth), sums[v]);
    }
    config += kNetworkLanes;
  }
  for (std::size_t h = 0; h < task.hidden; ++h) {
    const V value = Isa::set(task.problem[task.dot + h]);
    const V weight = Isa::set(task.interaction[h]);
    FORETUNE_UNROLL(8)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const V hidden = Isa::max0(Isa::add(value, Isa::load(config + v * Isa::kWidth)));
      sums[v] = Isa::fma(weight, hidden, sums[v]);
    }
    config += kNetworkLanes;
  }
  FORETUNE_UNROLL(8)
  for (std::size_t v = 0; v < kVectors; ++v) {
    Isa::store(task.output + v * Isa::kWidth, sums[v]);
  }
}

}  // namespace
}  // namespace foretune
