#include "foretune/families/cpu_conv/conv_view.h"

#include <algorithm>
#include <array>
#include <utility>

namespace foretune::cpu_conv {
namespace {

struct Axis {
  std::ptrdiff_t input, output, filter, stride, pad, dilation;
};

std::array<Axis, 3> axes_of(const ConvProblem& problem) {
  const ConvSizes& s = problem.sizes();
  return {Axis{s.di, problem.depth_out(), s.z, s.stride_d, s.pad_d, s.dilation_d},
          Axis{s.hi, problem.ho(), s.y, s.stride_h, s.pad_h, s.dilation_h},
          Axis{s.wi, problem.wo(), s.x, s.stride_w, s.pad_w, s.dilation_w}};
}

// The points of one axis that have the same taps.
struct AxisGrid {
  std::ptrdiff_t first = 0;
  std::ptrdiff_t step = 1;
  std::ptrdiff_t count = 0;
  std::ptrdiff_t stride = 1;
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> taps;  // offset, position in the filter
};

// Returns one grid or, where one of `period` points is left out, one for each of the others.
std::vector<AxisGrid> forward_grids(const Axis& axis, std::ptrdiff_t period,
                                    std::ptrdiff_t left_out) {
  std::vector<AxisGrid> grids;
  const std::ptrdiff_t step = std::max<std::ptrdiff_t>(period, 1);
  for (std::ptrdiff_t first = 0; first < std::min(step, axis.output); ++first) {
    if (period > 0 && first == left_out) {
      continue;
    }
    AxisGrid grid{.first = first,
                  .step = step,
                  .count = (axis.output - first + step - 1) / step,
                  .stride = axis.stride * step};
    for (std::ptrdiff_t tap = 0; tap < axis.filter; ++tap) {
      grid.taps.emplace_back(first * axis.stride + tap * axis.dilation - axis.pad, tap);
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

// Input point `phase + stride * q` gets a product from output point o by tap t where
// phase + stride * q + pad = stride * o + dilation * t.
std::vector<AxisGrid> backward_grids(const Axis& axis) {
  std::vector<AxisGrid> grids;
  for (std::ptrdiff_t phase = 0; phase < std::min(axis.stride, axis.input); ++phase) {
    AxisGrid grid{.first = phase,
                  .step = axis.stride,
                  .count = (axis.input - phase + axis.stride - 1) / axis.stride};
    // From the last tap to the first, so that offsets ascend.
    for (std::ptrdiff_t tap = axis.filter - 1; tap >= 0; --tap) {
      const std::ptrdiff_t distance = phase + axis.pad - tap * axis.dilation;
      if (distance % axis.stride == 0) {
        grid.taps.emplace_back(distance / axis.stride, tap);
      }
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

ConvGrid combine(const AxisGrid& d, const AxisGrid& h, const AxisGrid& w,
                 const ConvProblem& problem) {
  ConvGrid grid{.first = {d.first, h.first, w.first},
                .step = {d.step, h.step, w.step},
                .count = {d.count, h.count, w.count},
                .stride = {d.stride, h.stride, w.stride},
                .taps = {}};
  for (const auto& [depth, z] : d.taps) {
    for (const auto& [height, y] : h.taps) {
      for (const auto& [width, x] : w.taps) {
        const std::ptrdiff_t point = (z * problem.sizes().y + y) * problem.sizes().x + x;
        if (!problem.skips_tap(point)) {
          grid.taps.push_back({.offset = {depth, height, width}, .point = point});
        }
      }
    }
  }
  return grid;
}

}  // namespace

ConvView ConvView::of(const ConvProblem& problem) {
  const ConvSizes& sizes = problem.sizes();
  const std::array<Axis, 3> axes = axes_of(problem);
  ConvView view{.images = sizes.n,
                .groups = sizes.g,
                .inputs = sizes.c / sizes.g,
                .outputs = sizes.k / sizes.g,
                .in = {sizes.di, sizes.hi, sizes.wi},
                .out = {problem.depth_out(), problem.ho(), problem.wo()},
                .filter_points = sizes.z * sizes.y * sizes.x,
                .is_transposed = false,
                .grids = {}};
  if (problem.operation() != ConvOperation::kBackwardData) {
    for (const AxisGrid& d : forward_grids(axes[0], 0, 0)) {
      for (const AxisGrid& h : forward_grids(axes[1], sizes.skip_rows, sizes.skip_rows_at)) {
        for (const AxisGrid& w :
             forward_grids(axes[2], sizes.skip_columns, sizes.skip_columns_at)) {
          view.grids.push_back(combine(d, h, w, problem));
        }
      }
    }
    return view;
  }
  std::swap(view.inputs, view.outputs);
  std::swap(view.in, view.out);
  view.is_transposed = true;
  for (const AxisGrid& d : backward_grids(axes[0])) {
    for (const AxisGrid& h : backward_grids(axes[1])) {
      for (const AxisGrid& w : backward_grids(axes[2])) {
        view.grids.push_back(combine(d, h, w, problem));
      }
    }
  }
  return view;
}

}  // namespace foretune::cpu_conv
