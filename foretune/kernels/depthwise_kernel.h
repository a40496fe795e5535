// Kernels for groups of one channel: vectors lie along channels, and a block of points times
// vectors is summed over the taps of a filter. The operands are read where they are.
//
//   output[p][c] = max(floor, bias[c] + addend[p][c]
//                             + sum over rows r and columns t of input[p + r + t][c] * w[r + t][c])
//
// No kernel reads or writes a byte outside of the given points and channels, tails included.
// Thread safety: free functions on constant tables.
#pragma once

#include <cstddef>
#include <limits>

#include "foretune/hardware/cpu.h"

namespace foretune {

inline constexpr int kMaxDepthwisePoints = 8;
inline constexpr int kMaxDepthwiseVectors = 3;

// Where a row or a column of taps begins, in elements.
struct DepthwiseTap {
  std::ptrdiff_t input = 0;
  std::ptrdiff_t weight = 0;
};

// Distances are in elements.
struct DepthwiseCall {
  const float* input = nullptr;   // of the first point, at the tap (0, 0)
  std::ptrdiff_t input_step = 0;  // between points
  const float* weights = nullptr;
  const DepthwiseTap* rows = nullptr;
  int row_count = 0;
  const DepthwiseTap* columns = nullptr;
  int column_count = 0;
  const float* bias = nullptr;    // of the first channel, or null
  const float* addend = nullptr;  // as the output, or null
  float* output = nullptr;
  std::ptrdiff_t output_step = 0;
  float floor = -std::numeric_limits<float>::infinity();
  int last_channels = 0;  // of the last vector, 1 to lanes; only kernels with a tail look at it
};

using DepthwiseKernel = void (*)(const DepthwiseCall& call);

struct DepthwiseKernelSet {
  int lanes = 1;
  // [tail][vectors - 1][points - 1]
  DepthwiseKernel table[2][kMaxDepthwiseVectors][kMaxDepthwisePoints] = {};  // NOLINT(*-c-arrays)

  // Returns nullptr when there is no such block.
  [[nodiscard]] DepthwiseKernel find(int points, int vectors, bool tail) const {
    return points < 1 || points > kMaxDepthwisePoints || vectors < 1 ||
                   vectors > kMaxDepthwiseVectors
               ? nullptr
               : table[tail ? 1 : 0][vectors - 1][points - 1];
  }
};

// Returns the kernels for `isa`, or nullptr when this build has none or this CPU cannot run them.
const DepthwiseKernelSet* depthwise_kernel_set(CpuIsa isa);

}  // namespace foretune
