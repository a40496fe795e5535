// Operators along dimensions: reductions, softmax, normalisation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

// Earlier versions of Softmax treat all dimensions from the axis on as one.
constexpr std::int64_t kOpsetOfSoftmaxAxis = 13;

}  // namespace

Status convert_reduce(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const std::size_t rank = context.shape(x).size();
  FORETUNE_TRY(const auto listed, context.listed("axes", 1));
  std::vector<std::int64_t> axes;
  if (listed) {
    for (const std::int64_t axis : *listed) {
      FORETUNE_TRY(const std::size_t place, NodeContext::axis_of(axis, rank));
      axes.push_back(static_cast<std::int64_t>(place));
    }
  }
  if (axes.empty() && context.integer_or("noop_with_empty_axes", 0) != 0) {
    context.give(x);
    return {};
  }
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const std::string& op = context.node().op;
  FORETUNE_TRY(Value result,
               context.reduce(op == "ReduceMean"  ? "reduce_mean"
                              : op == "ReduceSum" ? "reduce_sum"
                                                  : "reduce_max",
                              x, std::move(axes), context.integer_or("keepdims", 1) != 0));
  context.give(std::move(result));
  return {};
}

Status convert_softmax(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  const bool is_old = context.opset() < kOpsetOfSoftmaxAxis;
  FORETUNE_TRY(const std::size_t axis,
               NodeContext::axis_of(context.integer_or("axis", is_old ? 1 : -1), shape.size()));
  const std::span<const std::int64_t> inner = std::span(shape).subspan(axis);
  Value result;
  if (!is_old || graph::element_count(inner) == inner.front()) {
    FORETUNE_TRY(result, context.softmax(x, axis));
  } else {
    const std::int64_t outer = graph::element_count(std::span(shape).first(axis));
    FORETUNE_TRY(const Value flat, context.reshape(x, {outer, graph::element_count(inner)}));
    FORETUNE_TRY(const Value rows, context.softmax(flat, 1));
    FORETUNE_TRY(result, context.reshape(rows, shape));
  }
  context.give(std::move(result));
  return {};
}

Status convert_layer_norm(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  FORETUNE_TRY(const std::size_t axis,
               NodeContext::axis_of(context.integer_or("axis", -1), shape.size()));
  const auto inner = std::span(shape).subspan(axis);
  std::vector<Value> inputs{x};
  for (std::size_t i = 1; i <= 2 && context.has(i); ++i) {
    FORETUNE_TRY(const ArrayPtr array, context.constant(i));
    FORETUNE_TRY(ArrayPtr wide, fold_expand(*array, inner, context.allowance()));
    inputs.push_back({.array = std::move(wide)});
  }
  const double epsilon = context.number_or("epsilon", static_cast<double>(1e-5F));
  FORETUNE_TRY(Value result,
               context.add("layer_norm", inputs,
                           {.integers = {static_cast<std::int64_t>(axis)}, .numbers = {epsilon}}));
  context.give(std::move(result));
  return {};
}

Status convert_lrn(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(
      Value result,
      context.add("local_norm", {x},
                  {.integers = {context.integer_or("size", 0)},
                   .numbers = {context.number_or("alpha", static_cast<double>(1e-4F)),
                               context.number_or("beta", 0.75), context.number_or("bias", 1)}}));
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
