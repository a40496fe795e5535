// Products of matrices: with weights they become linear, of two tensors matmul.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

constexpr std::int64_t kMinMatmulRank = 3;

Result<Value> turned(NodeContext& context, const Value& x) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < context.shape(x).size(); ++i) {
    order.push_back(static_cast<std::int64_t>(i));
  }
  if (order.size() < 2) {
    return fail(ErrorCode::kUnsupported, "an operand of ", graph::to_text(context.shape(x)),
                " is no matrix");
  }
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return context.transpose(x, order);
}

Result<Value> scaled(NodeContext& context, const Value& x, double factor) {
  if (factor == 1) {
    return x;
  }
  return context.binary("mul", x, NodeContext::numbers({1}, {static_cast<float>(factor)}));
}

// Multiplies tensors, raised to three dimensions where they have two.
Result<Value> product(NodeContext& context, const Value& a, const Value& b) {
  const std::size_t own = std::max(context.shape(a).size(), context.shape(b).size());
  const std::size_t rank = std::max<std::size_t>(own, kMinMatmulRank);
  if (std::min(context.shape(a).size(), context.shape(b).size()) < 2) {
    return fail(ErrorCode::kUnsupported, "vectors are multiplied");
  }
  FORETUNE_TRY(const Value high_a, context.raised(a, rank));
  FORETUNE_TRY(const Value high_b, context.raised(b, rank));
  FORETUNE_TRY(Value result, context.add("matmul", {high_a, high_b}));
  if (own == rank) {
    return result;
  }
  const Shape shape = context.shape(result);
  return context.reshape(result, Shape(shape.begin() + 1, shape.end()));
}

// Returns the constant as a matrix, where all other extents are 1.
Result<Value> matrix_of(NodeContext& context, const Value& constant) {
  const Shape shape = context.shape(constant);
  if (shape.size() < 2 || shape[shape.size() - 2] * shape.back() != graph::element_count(shape)) {
    return fail(ErrorCode::kUnsupported, "constant operands of ", graph::to_text(shape),
                " are no single matrix");
  }
  return context.reshape(constant, Shape(shape.end() - 2, shape.end()));
}

// x times the transpose of `weights`; a vector that is added next is taken as the bias.
Result<Value> linear(NodeContext& context, const Value& x, const Value& weights) {
  std::vector<Value> inputs{x, weights};
  FORETUNE_TRY(const std::optional<Value> bias, context.take_bias(context.shape(weights)[0]));
  if (bias) {
    inputs.push_back(*bias);
  }
  return context.add("linear", inputs);
}

}  // namespace

Status convert_matmul(NodeContext& context) {
  FORETUNE_TRY(const Value a, context.value(0));
  FORETUNE_TRY(const Value b, context.value(1));
  Value result;
  if (a.is_constant() == b.is_constant()) {
    if (a.is_constant()) {
      return fail(ErrorCode::kUnsupported, "both operands are constant");
    }
    FORETUNE_TRY(result, product(context, a, b));
  } else if (b.is_constant()) {
    FORETUNE_TRY(const Value matrix, matrix_of(context, b));
    FORETUNE_TRY(const Value weights, turned(context, matrix));
    FORETUNE_TRY(const Value x, context.raised(a, context.shape(b).size()));
    FORETUNE_TRY(result, linear(context, x, weights));
  } else {
    // The transpose of b^T times a^T.
    FORETUNE_TRY(const Value weights, matrix_of(context, a));
    const std::size_t own = std::max(context.shape(a).size(), context.shape(b).size());
    FORETUNE_TRY(const Value high, context.raised(b, std::max<std::size_t>(own, kMinMatmulRank)));
    FORETUNE_TRY(const Value x, turned(context, high));
    FORETUNE_TRY(const Value sums, context.add("linear", {x, weights}));
    FORETUNE_TRY(result, turned(context, sums));
    if (own < kMinMatmulRank) {
      const Shape shape = context.shape(result);
      FORETUNE_TRY(result, context.reshape(result, Shape(shape.begin() + 1, shape.end())));
    }
  }
  context.give(std::move(result));
  return {};
}

Status convert_gemm(NodeContext& context) {
  FORETUNE_TRY(Value a, context.value(0));
  FORETUNE_TRY(Value b, context.value(1));
  const double alpha = context.number_or("alpha", 1);
  const double beta = context.number_or("beta", 1);
  if (context.shape(a).size() != 2 || context.shape(b).size() != 2) {
    return fail(ErrorCode::kInvalidArgument, "the operands are no matrices");
  }
  if (a.is_constant()) {
    return fail(ErrorCode::kUnsupported, "the first operand is constant");
  }
  if (context.integer_or("transA", 0) != 0) {
    FORETUNE_TRY(a, turned(context, a));
  }
  Value c;
  const bool has_c = context.has(2) && beta != 0;
  if (has_c) {
    FORETUNE_TRY(c, context.value(2));
    FORETUNE_TRY(c, scaled(context, c, beta));
  }
  const bool is_turned = context.integer_or("transB", 0) != 0;
  Value result;
  bool adds = has_c;
  if (b.is_constant()) {
    Value weights = b;
    if (!is_turned) {
      FORETUNE_TRY(weights, turned(context, b));
    }
    FORETUNE_TRY(weights, scaled(context, weights, alpha));
    std::vector<Value> inputs{a, weights};
    const std::int64_t outputs = context.shape(weights)[0];
    if (has_c && c.is_constant() &&
        (c.array->shape == Shape{outputs} || c.array->shape == Shape{1, outputs})) {
      inputs.push_back(c);
      adds = false;
    }
    FORETUNE_TRY(result, context.add("linear", inputs));
  } else {
    if (is_turned) {
      FORETUNE_TRY(b, turned(context, b));
    }
    FORETUNE_TRY(result, product(context, a, b));
    FORETUNE_TRY(result, scaled(context, result, alpha));
  }
  if (adds) {
    FORETUNE_TRY(result, context.binary("add", result, c));
  }
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
