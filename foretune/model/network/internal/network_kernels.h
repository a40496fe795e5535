// The code that the fast evaluation of networks runs, once for every instruction set. Internal to
// the module. Candidates are lanes: a block of them goes through all layers while its values stay
// in the first cache level and the weights are read from the second. Each sum of a lane is one
// chain of fused multiply-adds, so that all instruction sets give the same bits. Sums of values and
// weights of 8 bits are exact.
//
// Thread safety: the functions touch only the memory that the task points to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune {

// Number of candidates in one block: three vectors of AVX-512. Matrices of values have a row of
// this length for each input or output.
inline constexpr std::size_t kNetworkLanes = 48;
// Number of outputs computed together. Rows of outputs are padded to whole tiles.
inline constexpr std::size_t kNetworkTile = 8;

// Number of inputs of 8 bits multiplied together.
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
  const float* weights;  // tile by tile of outputs: kNetworkTile for each input
  const float* bias;     // padded
  const float* initial;  // padded x kNetworkLanes, or null
  const float* skip;     // padded x kNetworkLanes, or null; may be `output`
  const float* scale;    // padded, or null
  const float* shift;
  float* output;  // padded x kNetworkLanes
  std::size_t inputs;
  std::size_t outputs;
  std::size_t lanes;  // in use; vectors without any are left out
  bool is_rectified;
};

// Values of 8 bits for the candidates of a block: network_int8.h says how they are made.
inline constexpr float kInt8Levels = 255;         // steps of a range
inline constexpr float kInt8LeastRange = 1e-30F;  // smaller ranges have no steps
struct NetworkInt8Values {
  bool are_positive;    // or 0
  std::uint8_t* quads;  // network_quads(inputs) x kNetworkLanes x kNetworkQuad
  float* low;           // kNetworkLanes
  float* step;          // kNetworkLanes
};
struct NetworkInt8Weights {
  const std::int8_t* quads;  // tile by tile of outputs: kNetworkTile x kNetworkQuad for each quad
  const float* input_scales;
  const float* sums;   // padded: sum of an output's integers
  const float* steps;  // padded
};

// The scores of one block by two towers, from rows of kNetworkLanes of the config's tower.
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
  // Does the same with weights of 8 bits. It ignores `weights` and `initial` of the task, and
  // quantises its input into `values`. Where the input is known not to be negative (`are_positive`)
  // this is faster and gives the same result.
  void (*dense_int8)(const NetworkDense& task, const NetworkInt8Weights& weights,
                     const NetworkInt8Values& values);
  void (*towers)(const NetworkTowers& task);
};

// Null where the build lacks the code.
const NetworkKernels* network_kernels_generic();
const NetworkKernels* network_kernels_avx2();
const NetworkKernels* network_kernels_avx512();
const NetworkKernels* network_kernels_vnni();  // AVX-512 with its instructions for 8 bits
// Returns the best of these for a CPU.
const NetworkKernels* network_kernels(CpuIsa isa);

}  // namespace foretune
