// A convolution as sums over taps. Forward and backward data have the same form: every point of an
// output is the sum, over taps and input channels, of an input point times a weight. A forward pass
// is one grid of output points. The gradient of a strided convolution's input falls into phases,
// one for each position within a stride, and each phase is a grid with taps of its own.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "foretune/problem/conv/conv.h"

namespace foretune::cpu_conv {

// Depth, height and width.
struct Triple {
  std::ptrdiff_t d = 0;
  std::ptrdiff_t h = 0;
  std::ptrdiff_t w = 0;
  [[nodiscard]] std::ptrdiff_t volume() const { return d * h * w; }
  bool operator==(const Triple&) const = default;
};

struct ConvTap {
  Triple offset;             // of the input point from the grid's index times its stride
  std::ptrdiff_t point = 0;  // position among the points of a filter
};

// A regular grid of output points that have the same taps.
struct ConvGrid {
  Triple first;   // the output point with index 0
  Triple step;    // between output points
  Triple count;   // of the points
  Triple stride;  // of the input points of neighbours
  // In ascending order of depth, height and width. Empty: these points of the output are 0.
  std::vector<ConvTap> taps;
};

struct ConvView {
  std::ptrdiff_t images = 1;
  std::ptrdiff_t groups = 1;
  std::ptrdiff_t inputs = 1;   // channels of a group that are summed over
  std::ptrdiff_t outputs = 1;  // channels of a group that are computed
  Triple in;                   // points of an image
  Triple out;
  std::ptrdiff_t filter_points = 1;
  // False: weight (output, point, input) is stored in this order; true: (input, point, output).
  bool is_transposed = false;
  std::vector<ConvGrid> grids;

  // The problem's operation is forward or backward data.
  static ConvView of(const ConvProblem& problem);
};

}  // namespace foretune::cpu_conv
