// Draws convolutions for tests. Thread safety: free functions.
#pragma once

#include <cstdint>

#include "foretune/base/rng.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cpu_conv {

// Leaves out rows, columns or, unless there is one for each channel, points of filters.
inline void draw_skips(ConvSizes& sizes, Rng& rng) {
  const auto draw = [&](std::int64_t& period, std::int64_t& at) {
    period = rng.between(2, 4);
    at = rng.between(0, period - 1);
  };
  if (rng.below(2) == 0) {
    draw(sizes.skip_rows, sizes.skip_rows_at);
  }
  if (rng.below(3) == 0) {
    draw(sizes.skip_columns, sizes.skip_columns_at);
  }
  if (rng.below(3) == 0 && sizes.g == 1) {
    draw(sizes.skip_taps, sizes.skip_taps_at);
  }
}

inline ConvSizes without_skips(ConvSizes sizes) {
  for (std::int64_t* const field :
       {&sizes.skip_rows, &sizes.skip_rows_at, &sizes.skip_columns, &sizes.skip_columns_at,
        &sizes.skip_taps, &sizes.skip_taps_at}) {
    *field = 0;
  }
  return sizes;
}

// Draws a small convolution of any shape: one to three dimensions, groups, strides, dilations,
// channels last or first.
inline ConvProblem draw_problem(Rng& rng) {
  while (true) {
    ConvSizes sizes;
    sizes.operation = static_cast<ConvOperation>(rng.below(3));
    const int dimensions = static_cast<int>(rng.between(1, 3));
    const bool is_depthwise = rng.below(6) == 0;
    sizes.g = is_depthwise || rng.below(2) == 0 ? rng.between(1, rng.below(4) == 0 ? 40 : 9) : 1;
    const bool is_narrow = !is_depthwise && sizes.g > 1 && rng.below(2) == 0;
    sizes.c = sizes.g * (is_depthwise ? 1 : rng.between(1, is_narrow ? 5 : 20));
    sizes.k = sizes.g * (is_depthwise ? rng.between(1, 2) : rng.between(1, is_narrow ? 5 : 40));
    sizes.n = rng.between(1, 3);
    const auto axis = [&](std::int64_t& input, std::int64_t& filter, std::int64_t& stride,
                          std::int64_t& pad, std::int64_t& dilation, std::int64_t most) {
      input = rng.between(1, most);
      filter = rng.below(8) == 0 ? rng.between(5, 7) : rng.between(1, 4);
      stride = rng.between(1, 3);
      pad = rng.between(0, 3);
      dilation = rng.between(1, 2);
    };
    axis(sizes.wi, sizes.x, sizes.stride_w, sizes.pad_w, sizes.dilation_w, 20);
    if (dimensions > 1) {
      axis(sizes.hi, sizes.y, sizes.stride_h, sizes.pad_h, sizes.dilation_h, 9);
    }
    if (dimensions > 2) {
      axis(sizes.di, sizes.z, sizes.stride_d, sizes.pad_d, sizes.dilation_d, 5);
    }
    if (sizes.operation == ConvOperation::kForward && rng.below(2) == 0) {
      draw_skips(sizes, rng);
    }
    sizes.layout = rng.below(3) == 0 ? ConvLayout::kChannelsFirst : ConvLayout::kChannelsLast;
    if (const auto problem = ConvProblem::create(sizes)) {
      return *problem;
    }
  }
}

}  // namespace foretune::cpu_conv
