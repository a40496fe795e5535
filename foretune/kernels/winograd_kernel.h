// The transforms of Winograd's algorithm for 3 x 3 filters with stride 1 (Lavin and Gray 2016),
// with vectors along channels. A tile of m x m output points, m = 2 or 4, is computed from t x t
// input points, t = m + 2:
//
//   output = A^T [ (G w G^T) * (B^T x B) ] A      * element by element, summed over channels
//
// The elements of the t x t transformed tiles are positions, numbered by row; those of one position
// lie `step` floats from those of the next. No kernel reads or writes a byte outside of the given
// channels and points.
//
// Thread safety: free functions on constant tables.
#pragma once

#include <cstddef>
#include <limits>

#include "foretune/hardware/cpu.h"

namespace foretune {

// Transforms a tile, or the weights of a filter. `points` are the places of the first channel: t *
// t points of the input, or 9 of a filter, by row.
using WinogradTransform = void (*)(const float* const* points, std::ptrdiff_t channels, float* to,
                                   std::ptrdiff_t step);

struct WinogradOutput {
  const float* from = nullptr;
  std::ptrdiff_t step = 0;
  std::ptrdiff_t channels = 0;
  const float* bias = nullptr;    // of the first channel, or null
  const float* addend = nullptr;  // as the output, or null
  float* output = nullptr;        // of the tile's first point
  std::ptrdiff_t row_step = 0;    // between points of the output
  std::ptrdiff_t point_step = 0;
  int rows = 0;  // that exist, 1 to m
  int columns = 0;
  float floor = -std::numeric_limits<float>::infinity();
};

struct WinogradKernels {
  WinogradTransform input = nullptr;
  WinogradTransform weights = nullptr;
  void (*output)(const WinogradOutput& tile) = nullptr;
};

// Returns the kernels for tiles of 2 x 2 or, with `large`, 4 x 4 points, or nullptr when this build
// has none for `isa` or this CPU cannot run them.
const WinogradKernels* winograd_kernels(CpuIsa isa, bool large);

}  // namespace foretune
