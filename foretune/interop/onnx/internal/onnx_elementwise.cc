// Operators that treat every element by itself.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

struct OpName {
  std::string_view theirs;
  std::string_view ours;
};

constexpr std::array kOpNames{
    OpName{"Abs", "abs"},   OpName{"Add", "add"},         OpName{"Div", "div"},
    OpName{"Erf", "erf"},   OpName{"Exp", "exp"},         OpName{"HardSwish", "hard_swish"},
    OpName{"Max", "max"},   OpName{"Mean", "add"},        OpName{"Min", "min"},
    OpName{"Mul", "mul"},   OpName{"Neg", "neg"},         OpName{"Pow", "pow"},
    OpName{"Relu", "relu"}, OpName{"Sigmoid", "sigmoid"}, OpName{"Softplus", "softplus"},
    OpName{"Sqrt", "sqrt"}, OpName{"Sub", "sub"},         OpName{"Sum", "add"},
    OpName{"Tanh", "tanh"},
};

std::string_view our_name(const NodeContext& context) {
  for (const OpName& name : kOpNames) {
    if (name.theirs == context.node().op) {
      return name.ours;
    }
  }
  return {};
}

Value one_number(float value) { return NodeContext::numbers({1}, {value}); }

// Models before opset 7 say where the second operand's first dimension belongs.
constexpr std::int64_t kOpsetOfBroadcasting = 7;

Result<Value> aligned(NodeContext& context, const Value& a, const Value& b) {
  if (context.opset() >= kOpsetOfBroadcasting || context.integer_or("broadcast", 0) == 0 ||
      context.attribute("axis") == nullptr) {
    return b;
  }
  Shape shape = context.shape(b);
  const std::size_t rank = context.shape(a).size();
  FORETUNE_TRY(const std::size_t axis, NodeContext::axis_of(context.integer_or("axis", 0), rank));
  if (axis + shape.size() > rank) {
    return fail(ErrorCode::kInvalidArgument, "an operand of ", graph::to_text(shape),
                " does not fit at axis ", axis);
  }
  shape.insert(shape.end(), rank - axis - shape.size(), 1);
  return context.reshape(b, std::move(shape));
}

}  // namespace

Status convert_unary(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(Value result, context.unary(our_name(context), x));
  context.give(std::move(result));
  return {};
}

Status convert_clip(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const auto limit = static_cast<double>(std::numeric_limits<float>::max());
  double low = context.number_or("min", -limit);
  double high = context.number_or("max", limit);
  if (context.has(1)) {
    FORETUNE_TRY(low, context.number(1));
  }
  if (context.has(2)) {
    FORETUNE_TRY(high, context.number(2));
  }
  FORETUNE_TRY(Value result, context.unary("clip", x, {.numbers = {low, high}}));
  context.give(std::move(result));
  return {};
}

Status convert_leaky_relu(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const double slope = context.number_or("alpha", static_cast<double>(0.01F));
  FORETUNE_TRY(Value result, context.unary("leaky_relu", x, {.numbers = {slope}}));
  context.give(std::move(result));
  return {};
}

// relu(x) - slope * relu(-x), or a leaky_relu where all slopes are one number.
Status convert_prelu(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const ArrayPtr slopes, context.constant(1));
  if (graph::element_count(slopes->shape) == 1) {
    FORETUNE_TRY(const double slope, context.number(1));
    FORETUNE_TRY(Value result, context.unary("leaky_relu", x, {.numbers = {slope}}));
    context.give(std::move(result));
    return {};
  }
  Value factors{.array = slopes};
  const Shape shape = context.shape(x);
  if (context.opset() < kOpsetOfBroadcasting && slopes->shape.size() == 1 && shape.size() > 2) {
    Shape wide(shape.size() - 1, 1);
    wide[0] = slopes->shape[0];
    FORETUNE_TRY(factors, context.reshape(factors, std::move(wide)));
  }
  FORETUNE_TRY(const Value positive, context.unary("relu", x));
  FORETUNE_TRY(const Value turned, context.unary("neg", x));
  FORETUNE_TRY(const Value negative, context.unary("relu", turned));
  FORETUNE_TRY(const Value scaled, context.binary("mul", negative, factors));
  FORETUNE_TRY(Value result, context.binary("sub", positive, scaled));
  context.give(std::move(result));
  return {};
}

Status convert_hard_sigmoid(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const double slope = context.number_or("alpha", static_cast<double>(0.2F));
  const double offset = context.number_or("beta", 0.5);
  FORETUNE_TRY(Value result, context.unary("hard_sigmoid", x, {.numbers = {slope, offset}}));
  context.give(std::move(result));
  return {};
}

Status convert_gelu(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const std::string approximation = context.text_or("approximate", "none");
  if (approximation != "none" && approximation != "tanh") {
    return fail(ErrorCode::kUnsupported, "approximate is ", foretune::quoted(approximation));
  }
  FORETUNE_TRY(Value result, context.unary(approximation == "tanh" ? "gelu_tanh" : "gelu", x));
  context.give(std::move(result));
  return {};
}

Status convert_reciprocal(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(Value result, context.binary("div", one_number(1.0F), x));
  context.give(std::move(result));
  return {};
}

Status convert_binary(NodeContext& context) {
  FORETUNE_TRY(const Value a, context.value(0));
  FORETUNE_TRY(const Value right, context.value(1));
  FORETUNE_TRY(const Value b, aligned(context, a, right));
  FORETUNE_TRY(Value result, context.binary(our_name(context), a, b));
  context.give(std::move(result));
  return {};
}

Status convert_variadic(NodeContext& context) {
  FORETUNE_TRY(Value result, context.value(0));
  const std::size_t count = context.node().inputs.size();
  for (std::size_t i = 1; i < count; ++i) {
    FORETUNE_TRY(const Value operand, context.value(i));
    FORETUNE_TRY(result, context.binary(our_name(context), result, operand));
  }
  if (context.node().op == "Mean" && count > 1) {
    const float factor = 1.0F / static_cast<float>(count);
    FORETUNE_TRY(result, context.binary("mul", result, one_number(factor)));
  }
  context.give(std::move(result));
  return {};
}

Status convert_batch_norm(NodeContext& context) {
  if (context.integer_or("training_mode", 0) != 0 || context.integer_or("spatial", 1) == 0) {
    return fail(ErrorCode::kUnsupported,
                "only the normalisation of channels by stored statistics is read");
  }
  FORETUNE_TRY(const Value x, context.value(0));
  std::vector<std::shared_ptr<const std::vector<float>>> numbers;
  for (std::size_t i = 1; i <= 4; ++i) {
    FORETUNE_TRY(const ArrayPtr array, context.constant(i));
    numbers.push_back(numbers_of(*array));
    if (numbers.back()->size() != numbers.front()->size()) {
      return fail(ErrorCode::kInvalidArgument, "scale, shift, mean and variance differ in size");
    }
  }
  const double epsilon = context.number_or("epsilon", static_cast<double>(1e-5F));
  const std::size_t count = numbers[0]->size();
  std::vector<float> scale(count);
  std::vector<float> shift(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double factor = static_cast<double>((*numbers[0])[i]) /
                          std::sqrt(static_cast<double>((*numbers[3])[i]) + epsilon);
    scale[i] = static_cast<float>(factor);
    shift[i] = static_cast<float>(static_cast<double>((*numbers[1])[i]) -
                                  factor * static_cast<double>((*numbers[2])[i]));
  }
  const Shape shape{static_cast<std::int64_t>(count)};
  FORETUNE_TRY(Value result,
               context.add("affine", {x, NodeContext::numbers(shape, std::move(scale)),
                                      NodeContext::numbers(shape, std::move(shift))}));
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
