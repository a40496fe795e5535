#include "foretune/graph/run/variant.h"

#include <cstdint>

#include "foretune/graph/ops.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::graph {

namespace {

Support check_period(std::string_view what, std::int64_t period, std::int64_t at,
                     std::int64_t length) {
  if (period == 0 && at == 0) {
    return Support::yes();
  }
  if (period < 2 || at < 0 || at >= period) {
    return Support::no("one of ", period, " ", what, " at ", at, " makes no sense");
  }
  if (length < 2) {
    return Support::no("there are only ", length, " ", what);
  }
  if (at >= length) {
    return Support::no("none of ", length, " ", what, " is left out");
  }
  return Support::yes();
}

}  // namespace

Support can_run(const Network& network, const Node& node, const LayerVariant& variant) {
  const bool is_conv = node.op->name == "conv";
  if (!has_weights(*node.op)) {
    return variant == LayerVariant{} ? Support::yes()
                                     : Support::no(node.op->name, " has no other way to compute");
  }
  if (variant.type != DataType::kF32 && variant.type != DataType::kF16 &&
      variant.type != DataType::kBf16 && variant.type != DataType::kI8) {
    return Support::no("layers compute in f32, f16, bf16 and i8, not ", to_string(variant.type));
  }
  if (variant.before_activation && variant.type != DataType::kF32 &&
      variant.type != DataType::kF16) {
    return Support::no("only f32 and f16 are interpolated before the activation");
  }
  if (!is_conv) {
    LayerVariant plain = variant;
    plain.type = DataType::kF32;
    plain.before_activation = false;
    return plain == LayerVariant{} ? Support::yes()
                                   : Support::no("linear has neither rows nor points of filters");
  }
  const Shape& output = network.tensor(node.output).shape;
  const Window window = conv_window(network.tensor(node.inputs[1]).shape, node.attributes);
  if (Support rows = check_period("rows", variant.skip_rows, variant.skip_rows_at, output[2]);
      !rows) {
    return rows;
  }
  if (Support columns =
          check_period("columns", variant.skip_columns, variant.skip_columns_at, output[3]);
      !columns) {
    return columns;
  }
  if (variant.skip_taps > 0 && window.groups > 1) {
    return Support::no("points of filters are left out in a single group only");
  }
  if (Support weights =
          check_period("weights of a filter", variant.zero_weights, variant.zero_weights_at,
                       element_count(network.tensor(node.inputs[1]).shape) /
                           network.tensor(node.inputs[1]).shape[0]);
      !weights) {
    return weights;
  }
  return check_period("points of a filter", variant.skip_taps, variant.skip_taps_at,
                      window.kernel_h * window.kernel_w);
}

}  // namespace foretune::graph
