// What the fast evaluation of networks runs, once for every instruction set. Internal to
// models/infer. Candidates are lanes: a block of them goes through all layers while its values stay
// in the first cache level, and the weights come by from the second. Every lane's sums are one
// chain of fused multiply-adds each, so that all instruction sets give the same bits; sums of
// values and weights of 8 bits are exact.
//
// Thread safety: the functions work on what the task points to, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune {

// Candidates of one block: three vectors of AVX-512. Matrices of values have a row of so many for
// each input or output.
inline constexpr std::size_t kNetworkLanes = 48;
// Outputs that are computed together; rows of outputs are padded to whole tiles.
inline constexpr std::size_t kNetworkTile = 8;

// Inputs of 8 bits that are multiplied together.
inline constexpr std::size_t kNetworkQuad = 4;

inline constexpr std::size_t network_quads(std::size_t inputs) {
  return (inputs + kNetworkQuad - 1) / kNetworkQuad;
}
inline constexpr std::size_t network_tiles(std::size_t outputs) {
  return (outputs + kNetworkTile - 1) / kNetworkTile;
}
inline constexpr std::size_t network_padded(std::size_t outputs) {
  return network_tiles(outputs) * kNetworkTile;
}

// output = act((bias + initial) + input W), as DenseLayer says. All pointers are aligned to 64.
struct NetworkDense {
  const float* input;    // inputs x kNetworkLanes
  const float* weights;  // of each tile of outputs: kNetworkTile for each input
  const float* bias;     // padded
  const float* initial;  // padded x kNetworkLanes, or null
  const float* skip;     // padded x kNetworkLanes, or null; may be `output`
  const float* scale;    // padded, or null
  const float* shift;
  float* output;  // padded x kNetworkLanes
  std::size_t inputs;
  std::size_t outputs;
  std::size_t lanes;  // that matter: the vectors with none of them are left out
  bool is_rectified;
};

// Values of 8 bits for the candidates of a block: network_int8.h says how they are made.
inline constexpr float kInt8Levels = 255;         // steps of a range
inline constexpr float kInt8LeastRange = 1e-30F;  // of which there are any
struct NetworkInt8Values {
  bool are_positive;    // or 0
  std::uint8_t* quads;  // network_quads(inputs) x kNetworkLanes x kNetworkQuad
  float* low;           // kNetworkLanes
  float* step;          // kNetworkLanes
};
struct NetworkInt8Weights {
  const std::int8_t* quads;  // of each tile of outputs: kNetworkTile x kNetworkQuad for each quad
  const float* input_scales;
  const float* sums;   // padded: of an output's whole numbers
  const float* steps;  // padded
};

// Scores of one block by two towers, from rows of kNetworkLanes of the config's tower.
struct NetworkTowers {
  const float* problem;      // dot + hidden values
  const float* config;       // dot + hidden + 1 rows
  const float* interaction;  // hidden values
  float* output;             // kNetworkLanes
  std::size_t dot;
  std::size_t hidden;
};

struct NetworkKernels {
  const char* name;
  void (*dense)(const NetworkDense& task);
  // The same with weights of 8 bits: the task's are not looked at, nor is `initial`; its input is
  // made of 8 bits in `values`. Where it is known not to be negative that is faster, and the same.
  void (*dense_int8)(const NetworkDense& task, const NetworkInt8Weights& weights,
                     const NetworkInt8Values& values);
  void (*towers)(const NetworkTowers& task);
};

// Null where the build has none.
const NetworkKernels* network_kernels_generic();
const NetworkKernels* network_kernels_avx2();
const NetworkKernels* network_kernels_avx512();
const NetworkKernels* network_kernels_vnni();  // AVX-512 with its instructions for 8 bits
// The best of those for a CPU.
const NetworkKernels* network_kernels(CpuIsa isa);

}  // namespace foretune
