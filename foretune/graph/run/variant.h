// The ways in which a layer (a convolution or linear operation) may compute less: a narrower type,
// rows and columns of its output that are interpolated, points of its filters that are left out.
//
//   Variants variants;
//   variants["conv2"] = {.type = DataType::kI8, .skip_rows = 2};
//
// Thread safety: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::graph {

struct LayerVariant {
  // kF32, kF16 (weights are stored so and widened when the plan is made), kBf16 (sums in f32) or
  // kI8 (sums in i32; inputs by tensor and weights by filter have
  // scales of their own). The result has this type, too, where everything that reads it takes it.
  DataType type = DataType::kF32;
  // The row at `skip_rows_at` of every `skip_rows` rows of the output is not computed: it becomes
  // the mean of its neighbours, or a copy at the edge. Columns alike. 0: all are computed.
  std::int64_t skip_rows = 0;
  std::int64_t skip_rows_at = 0;
  std::int64_t skip_columns = 0;
  std::int64_t skip_columns_at = 0;
  // The point at `skip_taps_at` of every `skip_taps` points of a filter is left out, and the other
  // weights grow by skip_taps / (skip_taps - 1).
  std::int64_t skip_taps = 0;
  std::int64_t skip_taps_at = 0;

  // The weight at `zero_weights_at` of every `zero_weights` weights of a filter (channel by
  // channel, then by row and column) counts as 0, and the others grow as with skip_taps. With a
  // period of 3 and 3x3 points the position moves by one from channel to channel. Takes no less
  // time.
  std::int64_t zero_weights = 0;
  std::int64_t zero_weights_at = 0;
  // Interpolates before the ReLU instead of behind it, and rounds the inputs and results of kF16:
  // PredTuner's order, which costs another pass.
  bool before_activation = false;

  [[nodiscard]] bool skips_points() const { return skip_rows > 0 || skip_columns > 0; }
  auto operator<=>(const LayerVariant&) const = default;
};

// By the names of the network's operations; layers without an entry compute exactly.
using Variants = std::map<std::string, LayerVariant>;

// Says why a layer cannot be computed so, with a reason that names what does not fit.
Support can_run(const Network& network, const Node& node, const LayerVariant& variant);

// The smallest and largest values of tensors, by name, over images that stand for all.
struct Range {
  float low = 0;
  float high = 0;
};
using Calibration = std::map<std::string, Range>;

}  // namespace foretune::graph
