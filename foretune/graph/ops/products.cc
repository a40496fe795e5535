// Products of matrices: with weights, and of two tensors.
#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

Result<Shape> linear_shape(std::span<const OperandShape> inputs, const Attributes& /*none*/) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  const std::span<const std::int64_t> weights = inputs[1].shape;
  if (x.size() < 2 || weights.size() != 2 || x.back() != weights[1]) {
    return fail(ErrorCode::kInvalidArgument, "weights ", to_text(weights),
                " do not fit an input of ", to_text(x));
  }
  if (inputs.size() == 3 && element_count(inputs[2].shape) != weights[0]) {
    return fail(ErrorCode::kInvalidArgument, "a bias of ", element_count(inputs[2].shape),
                " numbers does not fit ", weights[0], " outputs");
  }
  Shape shape(x.begin(), x.end());
  shape.back() = weights[0];
  return shape;
}

void compute_linear(std::span<const OperandValues> inputs, const Attributes& /*none*/,
                    std::span<const std::int64_t> shape, std::span<double> result) {
  const auto outputs = static_cast<std::size_t>(shape.back());
  const auto depth = static_cast<std::size_t>(inputs[1].shape[1]);
  for (std::size_t place = 0; place < result.size(); ++place) {
    const std::size_t output = place % outputs;
    const double* const x = inputs[0].values.data() + place / outputs * depth;
    const double* const weights = inputs[1].values.data() + output * depth;
    double sum = inputs.size() == 3 ? inputs[2].values[output] : 0.0;
    for (std::size_t i = 0; i < depth; ++i) {
      sum += x[i] * weights[i];
    }
    result[place] = sum;
  }
}

double count_linear(std::span<const OperandShape> inputs, std::span<const std::int64_t> shape) {
  return static_cast<double>(element_count(shape)) * static_cast<double>(inputs[1].shape[1]);
}

Result<Shape> matmul_shape(std::span<const OperandShape> inputs, const Attributes& /*none*/) {
  const std::span<const std::int64_t> a = inputs[0].shape;
  const std::span<const std::int64_t> b = inputs[1].shape;
  if (a.size() < 3 || a.size() != b.size() || a.back() != b[b.size() - 2]) {
    return fail(ErrorCode::kInvalidArgument, "a product of ", to_text(a), " and ", to_text(b),
                " is not one of matrices in a batch");
  }
  for (std::size_t i = 0; i + 2 < a.size(); ++i) {
    if (a[i] != b[i]) {
      return fail(ErrorCode::kInvalidArgument, "the batches of ", to_text(a), " and ", to_text(b),
                  " differ");
    }
  }
  if (inputs[0].is_constant || inputs[1].is_constant) {
    return fail(ErrorCode::kInvalidArgument, "matmul takes no constants; linear has weights");
  }
  Shape shape(a.begin(), a.end());
  shape.back() = b.back();
  return shape;
}

void compute_matmul(std::span<const OperandValues> inputs, const Attributes& /*none*/,
                    std::span<const std::int64_t> shape, std::span<double> result) {
  const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(shape.back());
  const auto depth = static_cast<std::size_t>(inputs[0].shape.back());
  for (std::size_t place = 0; place < result.size(); ++place) {
    const std::size_t column = place % columns;
    const std::size_t row = place / columns;
    const double* const a = inputs[0].values.data() + row * depth;
    const double* const b = inputs[1].values.data() + row / rows * depth * columns + column;
    double sum = 0;
    for (std::size_t i = 0; i < depth; ++i) {
      sum += a[i] * b[i * columns];
    }
    result[place] = sum;
  }
}

double count_matmul(std::span<const OperandShape> inputs, std::span<const std::int64_t> shape) {
  return static_cast<double>(element_count(shape)) * static_cast<double>(inputs[0].shape.back());
}

}  // namespace

const OpInfo& linear_op() {
  static const OpInfo info{.name = "linear",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .shape = &linear_shape,
                           .compute = &compute_linear,
                           .multiply_adds = &count_linear};
  return info;
}

const OpInfo& matmul_op() {
  static const OpInfo info{.name = "matmul",
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .shape = &matmul_shape,
                           .compute = &compute_matmul,
                           .multiply_adds = &count_matmul};
  return info;
}

}  // namespace foretune::graph
