// Operations that move elements: another shape or order, parts, several tensors side by side.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

Result<Shape> reshape_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::vector<std::int64_t>& shape = attributes.integers;
  bool has_points = !shape.empty() && shape.size() <= kMaxRank;
  std::int64_t count = 1;  // could overflow
  for (std::size_t i = 0; i < shape.size() && has_points; ++i) {
    has_points = shape[i] >= 1 && shape[i] <= kMaxElements / count;
    count *= has_points ? shape[i] : 1;
  }
  if (!has_points || element_count(shape) != element_count(inputs[0].shape)) {
    return fail(ErrorCode::kInvalidArgument, "an input of ", to_text(inputs[0].shape),
                " cannot become ", to_text(shape));
  }
  return shape;
}

void compute_reshape(std::span<const OperandValues> inputs, const Attributes& /*shape*/,
                     std::span<const std::int64_t> /*shape*/, std::span<double> result) {
  std::copy(inputs[0].values.begin(), inputs[0].values.end(), result.begin());
}

Result<Shape> transpose_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  std::vector<std::int64_t> sorted = attributes.integers;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != x.size() || sorted[i] != static_cast<std::int64_t>(i)) {
      return fail(ErrorCode::kInvalidArgument, "no order of the ", x.size(), " dimensions of ",
                  to_text(x));
    }
  }
  if (sorted.size() != x.size() || attributes.integers[0] != 0) {
    return fail(ErrorCode::kInvalidArgument, "a transpose leaves the first dimension, the batch's");
  }
  Shape shape;
  for (const std::int64_t from : attributes.integers) {
    shape.push_back(x[static_cast<std::size_t>(from)]);
  }
  return shape;
}

// Calls `copy(to, from)` for every element of the result of `shape`; `steps` are the distances of
// neighbours in the operand, `first` is the place of the first element there.
template <class Copy>
void walk(std::span<const std::int64_t> shape, std::span<const std::int64_t> steps,
          std::int64_t first, const Copy& copy) {
  std::vector<std::int64_t> index(shape.size(), 0);
  const std::int64_t count = element_count(shape);
  for (std::int64_t place = 0; place < count; ++place) {
    std::int64_t from = first;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      from += index[i] * steps[i];
    }
    copy(static_cast<std::size_t>(place), static_cast<std::size_t>(from));
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) {
        break;
      }
      index[i] = 0;
    }
  }
}

std::vector<std::int64_t> dense_steps(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> steps(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    steps[i - 1] = steps[i] * shape[i];
  }
  return steps;
}

void compute_transpose(std::span<const OperandValues> inputs, const Attributes& attributes,
                       std::span<const std::int64_t> shape, std::span<double> result) {
  const std::vector<std::int64_t> dense = dense_steps(inputs[0].shape);
  std::vector<std::int64_t> steps;
  for (const std::int64_t from : attributes.integers) {
    steps.push_back(dense[static_cast<std::size_t>(from)]);
  }
  walk(shape, steps, 0,
       [&](std::size_t to, std::size_t from) { result[to] = inputs[0].values[from]; });
}

Result<Shape> concat_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  Shape shape(inputs[0].shape.begin(), inputs[0].shape.end());
  FORETUNE_TRY_STATUS(check_axis(attributes.integers[0], shape.size()));
  const auto axis = static_cast<std::size_t>(attributes.integers[0]);
  bool is_constant = inputs[0].is_constant;
  for (const OperandShape& input : inputs.subspan(1)) {
    is_constant = is_constant && input.is_constant;
    bool fits = input.shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      fits = i == axis || input.shape[i] == shape[i];
    }
    if (!fits) {
      return fail(ErrorCode::kInvalidArgument, to_text(input.shape), " does not fit beside ",
                  to_text(inputs[0].shape), " along dimension ", axis);
    }
    shape[axis] += input.shape[axis];
  }
  if (is_constant) {
    return fail(ErrorCode::kInvalidArgument, "all operands are constant");
  }
  return shape;
}

void compute_concat(std::span<const OperandValues> inputs, const Attributes& attributes,
                    std::span<const std::int64_t> shape, std::span<double> result) {
  const auto axis = static_cast<std::size_t>(attributes.integers[0]);
  const std::int64_t outer = extent_of(shape, 0, axis);
  auto to = result.begin();
  for (std::int64_t row = 0; row < outer; ++row) {
    for (const OperandValues& input : inputs) {
      const std::int64_t own = extent_of(input.shape, 0, axis);
      const std::int64_t extent = extent_of(input.shape, axis, input.shape.size());
      to = std::copy_n(input.values.begin() + row % own * extent, extent, to);
    }
  }
}

Result<Shape> slice_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  const std::vector<std::int64_t>& v = attributes.integers;
  FORETUNE_TRY_STATUS(check_axis(v[0], x.size()));
  const std::int64_t extent = x[static_cast<std::size_t>(v[0])];
  if (v[1] < 0 || v[2] <= v[1] || v[2] > extent || v[3] < 1) {
    return fail(ErrorCode::kInvalidArgument, "the part from ", v[1], " to ", v[2], " by ", v[3],
                " is not one of ", extent);
  }
  Shape shape(x.begin(), x.end());
  shape[static_cast<std::size_t>(v[0])] = (v[2] - v[1] - 1) / v[3] + 1;
  return shape;
}

void compute_slice(std::span<const OperandValues> inputs, const Attributes& attributes,
                   std::span<const std::int64_t> shape, std::span<double> result) {
  const auto axis = static_cast<std::size_t>(attributes.integers[0]);
  std::vector<std::int64_t> steps = dense_steps(inputs[0].shape);
  const std::int64_t first = attributes.integers[1] * steps[axis];
  steps[axis] *= attributes.integers[3];
  walk(shape, steps, first,
       [&](std::size_t to, std::size_t from) { result[to] = inputs[0].values[from]; });
}

Result<Shape> pad_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  Shape shape(inputs[0].shape.begin(), inputs[0].shape.end());
  const std::vector<std::int64_t>& v = attributes.integers;
  if (v.size() != 2 * shape.size() || v[0] != 0 || v[shape.size()] != 0) {
    return fail(ErrorCode::kInvalidArgument, "padding of ", to_text(shape), " takes ",
                2 * shape.size(), " numbers, and 0 for the batch");
  }
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] < 0 || v[i] > kMaxElements) {
      return fail(ErrorCode::kInvalidArgument, "padding by ", v[i]);
    }
    shape[i % shape.size()] += v[i];
  }
  return shape;
}

void compute_pad(std::span<const OperandValues> inputs, const Attributes& attributes,
                 std::span<const std::int64_t> shape, std::span<double> result) {
  std::fill(result.begin(), result.end(), attributes.numbers[0]);
  const std::vector<std::int64_t> steps = dense_steps(shape);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    first += attributes.integers[i] * steps[i];
  }
  walk(inputs[0].shape, steps, first,
       [&](std::size_t from, std::size_t to) { result[to] = inputs[0].values[from]; });
}

}  // namespace

const OpInfo& reshape_op() {
  static const OpInfo info{.name = "reshape",
                           .integers = kAnyNumber,
                           .shape = &reshape_shape,
                           .compute = &compute_reshape};
  return info;
}

const OpInfo& transpose_op() {
  static const OpInfo info{.name = "transpose",
                           .integers = kAnyNumber,
                           .shape = &transpose_shape,
                           .compute = &compute_transpose};
  return info;
}

const OpInfo& concat_op() {
  static const OpInfo info{.name = "concat",
                           .max_inputs = kAnyNumber,
                           .integers = 1,
                           .shape = &concat_shape,
                           .compute = &compute_concat};
  return info;
}

const OpInfo& slice_op() {
  static const OpInfo info{
      .name = "slice", .integers = 4, .shape = &slice_shape, .compute = &compute_slice};
  return info;
}

const OpInfo& pad_op() {
  static const OpInfo info{.name = "pad",
                           .integers = kAnyNumber,
                           .numbers = 1,
                           .shape = &pad_shape,
                           .compute = &compute_pad};
  return info;
}

}  // namespace foretune::graph
