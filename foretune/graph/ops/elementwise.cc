// Operations that treat every element by itself.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

template <double (*kFunction)(double, const Attributes&)>
void compute_unary(std::span<const OperandValues> inputs, const Attributes& attributes,
                   std::span<const std::int64_t> /*shape*/, std::span<double> result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = kFunction(inputs[0].values[i], attributes);
  }
}

template <double (*kFunction)(double, const Attributes&)>
OpInfo unary_op(std::string_view name, std::size_t numbers = 0) {
  return {.name = name,
          .numbers = numbers,
          .shape = &same_shape,
          .compute = &compute_unary<kFunction>,
          .unary = kFunction};
}

Result<Shape> binary_shape(std::span<const OperandShape> inputs, const Attributes& /*none*/) {
  FORETUNE_TRY(Shape shape, broadcast_shape(inputs[0].shape, inputs[1].shape));
  for (const OperandShape& input : inputs) {
    // Otherwise the batch would multiply something else than the first extent of the result.
    if (!input.is_constant && (input.shape.size() != shape.size() || input.shape[0] != shape[0])) {
      return fail(ErrorCode::kInvalidArgument, to_text(inputs[0].shape), " and ",
                  to_text(inputs[1].shape), " differ in the dimension of the batch");
    }
  }
  if (inputs[0].is_constant && inputs[1].is_constant) {
    return fail(ErrorCode::kInvalidArgument, "both operands are constant");
  }
  return shape;
}

// Returns the element of an operand that is broadcast. A constant is repeated for every image.
std::size_t broadcast_place(std::size_t place, std::span<const std::int64_t> result,
                            std::span<const std::int64_t> operand) {
  std::size_t from = 0;
  std::size_t step = 1;
  const std::size_t missing = result.size() - operand.size();
  for (std::size_t i = result.size(); i-- > 0;) {
    const auto extent = static_cast<std::size_t>(result[i]);
    const std::size_t index = place % extent;
    place /= extent;
    if (i >= missing) {
      const auto own = static_cast<std::size_t>(operand[i - missing]);
      from += index % own * step;
      step *= own;
    }
  }
  return from;
}

template <double (*kFunction)(double, double)>
void compute_binary(std::span<const OperandValues> inputs, const Attributes& /*none*/,
                    std::span<const std::int64_t> shape, std::span<double> result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = kFunction(inputs[0].values[broadcast_place(i, shape, inputs[0].shape)],
                          inputs[1].values[broadcast_place(i, shape, inputs[1].shape)]);
  }
}

template <double (*kFunction)(double, double)>
OpInfo binary_op(std::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .shape = &binary_shape,
          .compute = &compute_binary<kFunction>,
          .binary = kFunction};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hard_sigmoid(double x, double slope, double offset) {
  return std::clamp(slope * x + offset, 0.0, 1.0);
}

double unary_relu(double x, const Attributes& /*none*/) { return x < 0 ? 0 : x; }
double unary_sigmoid(double x, const Attributes& /*none*/) { return sigmoid(x); }
double unary_tanh(double x, const Attributes& /*none*/) { return std::tanh(x); }
double unary_erf(double x, const Attributes& /*none*/) { return std::erf(x); }
double unary_exp(double x, const Attributes& /*none*/) { return std::exp(x); }
double unary_sqrt(double x, const Attributes& /*none*/) { return std::sqrt(x); }
double unary_abs(double x, const Attributes& /*none*/) { return std::abs(x); }
double unary_neg(double x, const Attributes& /*none*/) { return -x; }
double unary_gelu(double x, const Attributes& /*none*/) {
  return x * (1 + std::erf(x / std::numbers::sqrt2)) / 2;
}
// The approximation of Hendrycks and Gimpel (2016).
double unary_gelu_tanh(double x, const Attributes& /*none*/) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  return x * (1 + std::tanh(factor * (x + 0.044715 * x * x * x))) / 2;
}
double unary_silu(double x, const Attributes& /*none*/) { return x * sigmoid(x); }
double unary_hard_swish(double x, const Attributes& /*none*/) {
  return x * hard_sigmoid(x, 1.0 / 6, 0.5);
}
double unary_softplus(double x, const Attributes& /*none*/) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double unary_clip(double x, const Attributes& attributes) {
  return std::min(std::max(x, attributes.numbers[0]), attributes.numbers[1]);
}
double unary_leaky_relu(double x, const Attributes& attributes) {
  return x < 0 ? attributes.numbers[0] * x : x;
}
double unary_hard_sigmoid(double x, const Attributes& attributes) {
  return hard_sigmoid(x, attributes.numbers[0], attributes.numbers[1]);
}

double binary_add(double a, double b) { return a + b; }
double binary_sub(double a, double b) { return a - b; }
double binary_mul(double a, double b) { return a * b; }
double binary_div(double a, double b) { return a / b; }
double binary_max(double a, double b) { return std::max(a, b); }
double binary_min(double a, double b) { return std::min(a, b); }
double binary_pow(double a, double b) { return std::pow(a, b); }

Result<Shape> affine_shape(std::span<const OperandShape> inputs, const Attributes& /*none*/) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  if (x.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "an input of ", to_text(x), " has no channels");
  }
  for (const OperandShape& operand : inputs.subspan(1)) {
    if (element_count(operand.shape) != x[1] || !operand.is_constant) {
      return fail(ErrorCode::kInvalidArgument, "scale and shift of ", to_text(x), " have ", x[1],
                  " constant numbers each");
    }
  }
  return Shape(x.begin(), x.end());
}

void compute_affine(std::span<const OperandValues> inputs, const Attributes& /*none*/,
                    std::span<const std::int64_t> shape, std::span<double> result) {
  const auto channels = static_cast<std::size_t>(shape[1]);
  const auto points = static_cast<std::size_t>(extent_of(shape, 2, shape.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t channel = i / points % channels;
    result[i] = inputs[0].values[i] * inputs[1].values[channel] + inputs[2].values[channel];
  }
}

}  // namespace

Result<Shape> broadcast_shape(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const std::span<const std::int64_t> longer = a.size() < b.size() ? b : a;
  const std::span<const std::int64_t> shorter = a.size() < b.size() ? a : b;
  Shape shape(longer.begin(), longer.end());
  const std::size_t missing = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& extent = shape[missing + i];
    if (extent != shorter[i] && extent != 1 && shorter[i] != 1) {
      return fail(ErrorCode::kInvalidArgument, to_text(a), " and ", to_text(b),
                  " cannot be broadcast");
    }
    extent = std::max(extent, shorter[i]);
  }
  return shape;
}

const OpInfo& affine_op() {
  static const OpInfo info{.name = "affine",
                           .min_inputs = 3,
                           .max_inputs = 3,
                           .shape = &affine_shape,
                           .compute = &compute_affine};
  return info;
}

#define FORETUNE_UNARY_OP(name, ...)                                                      \
  const OpInfo& name##_op() {                                                             \
    static const OpInfo info = unary_op<&unary_##name>(#name __VA_OPT__(, ) __VA_ARGS__); \
    return info;                                                                          \
  }
FORETUNE_UNARY_OP(relu)
FORETUNE_UNARY_OP(sigmoid)
FORETUNE_UNARY_OP(tanh)
FORETUNE_UNARY_OP(erf)
FORETUNE_UNARY_OP(exp)
FORETUNE_UNARY_OP(sqrt)
FORETUNE_UNARY_OP(abs)
FORETUNE_UNARY_OP(neg)
FORETUNE_UNARY_OP(gelu)
FORETUNE_UNARY_OP(gelu_tanh)
FORETUNE_UNARY_OP(silu)
FORETUNE_UNARY_OP(hard_swish)
FORETUNE_UNARY_OP(softplus)
FORETUNE_UNARY_OP(clip, 2)
FORETUNE_UNARY_OP(leaky_relu, 1)
FORETUNE_UNARY_OP(hard_sigmoid, 2)
#undef FORETUNE_UNARY_OP

#define FORETUNE_BINARY_OP(name)                                 \
  const OpInfo& name##_op() {                                    \
    static const OpInfo info = binary_op<&binary_##name>(#name); \
    return info;                                                 \
  }
FORETUNE_BINARY_OP(add)
FORETUNE_BINARY_OP(sub)
FORETUNE_BINARY_OP(mul)
FORETUNE_BINARY_OP(div)
FORETUNE_BINARY_OP(max)
FORETUNE_BINARY_OP(min)
FORETUNE_BINARY_OP(pow)
#undef FORETUNE_BINARY_OP

}  // namespace foretune::graph
