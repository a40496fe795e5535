// Constants that are computed of constants.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/graph/ops.h"
#include "foretune/interop/onnx/internal/onnx_array.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

// Makes an array of `shape` whose element i is element place(i) of `x`.
template <class Place>
ArrayPtr gathered(const Array& x, Shape shape, const Place& place) {
  const auto count = static_cast<std::size_t>(graph::element_count(shape));
  if (x.is_integer) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = x.integers[place(i)];
    }
    return integer_array(std::move(shape), std::move(values));
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = (*x.numbers)[place(i)];
  }
  return number_array(std::move(shape), std::move(values));
}

// Returns the place in a tensor of shape `own` that is broadcast to `shape`.
std::size_t place_in(std::size_t place, std::span<const std::int64_t> shape,
                     std::span<const std::int64_t> own) {
  std::size_t from = 0;
  std::size_t step = 1;
  const std::size_t missing = shape.size() - own.size();
  for (std::size_t i = shape.size(); i-- > missing;) {
    const auto extent = static_cast<std::size_t>(shape[i]);
    const auto own_extent = static_cast<std::size_t>(own[i - missing]);
    from += place % extent % own_extent * step;
    step *= own_extent;
    place /= extent;
  }
  return from;
}

bool is_empty(const Array& x) { return graph::element_count(x.shape) == 0; }

Status refuse_empty(const Array& x) {
  if (is_empty(x)) {
    return fail(ErrorCode::kUnsupported, "an empty constant is used");
  }
  return {};
}

// Wraps around as the hardware does.
std::int64_t wrapped(std::string_view op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(op == "add" ? x + y : op == "sub" ? x - y : x * y);
}

Result<std::int64_t> integer_result(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "add" || op == "sub" || op == "mul") {
    return wrapped(op, a, b);
  }
  if (op == "max" || op == "min") {
    return op == "max" ? std::max(a, b) : std::min(a, b);
  }
  if (op == "equal") {
    return a == b ? 1 : 0;
  }
  if (op == "div") {
    if (b == 0 || (b == -1 && a < -INT64_MAX)) {
      return fail(ErrorCode::kInvalidArgument, a, " is divided by ", b);
    }
    return a / b;
  }
  if (op == "mod" || op == "fmod") {
    if (b == 0) {
      return fail(ErrorCode::kInvalidArgument, a, " is divided by ", b);
    }
    const std::int64_t rest = b == -1 ? 0 : a % b;
    // The rest has the sign of b, or with fmod that of a.
    return op == "mod" && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  return fail(ErrorCode::kUnsupported, foretune::quoted(op), " of integers");
}

}  // namespace

ArrayPtr integer_array(Shape shape, std::vector<std::int64_t> values) {
  return std::make_shared<const Array>(
      Array{.shape = std::move(shape), .is_integer = true, .integers = std::move(values)});
}

ArrayPtr number_array(Shape shape, std::vector<float> values) {
  return std::make_shared<const Array>(
      Array{.shape = std::move(shape),
            .numbers = std::make_shared<const std::vector<float>>(std::move(values))});
}

std::shared_ptr<const std::vector<float>> numbers_of(const Array& array) {
  if (!array.is_integer) {
    return array.numbers;
  }
  std::vector<float> numbers;
  numbers.reserve(array.integers.size());
  for (const std::int64_t value : array.integers) {
    numbers.push_back(static_cast<float>(value));
  }
  return std::make_shared<const std::vector<float>>(std::move(numbers));
}

Result<ArrayPtr> fold_unary(double (*function)(double, const graph::Attributes&),
                            const graph::Attributes& attributes, const Array& x,
                            Allowance& allowance) {
  FORETUNE_TRY_STATUS(allowance.take(x.shape));
  std::vector<float> values = *numbers_of(x);
  for (float& value : values) {
    value = static_cast<float>(function(static_cast<double>(value), attributes));
  }
  return number_array(x.shape, std::move(values));
}

Result<ArrayPtr> fold_binary(std::string_view op, const Array& a, const Array& b,
                             Allowance& allowance) {
  FORETUNE_TRY_STATUS(refuse_empty(a));
  FORETUNE_TRY_STATUS(refuse_empty(b));
  FORETUNE_TRY(Shape shape, graph::broadcast_shape(a.shape, b.shape));
  FORETUNE_TRY_STATUS(allowance.take(shape));
  const auto count = static_cast<std::size_t>(graph::element_count(shape));
  if (a.is_integer && b.is_integer) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      FORETUNE_TRY(values[i], integer_result(op, a.integers[place_in(i, shape, a.shape)],
                                             b.integers[place_in(i, shape, b.shape)]));
    }
    return integer_array(std::move(shape), std::move(values));
  }
  const graph::OpInfo* const info = graph::find_op(op);
  if (info == nullptr || info->binary == nullptr) {
    return fail(ErrorCode::kUnsupported, foretune::quoted(op), " of numbers");
  }
  const auto of_a = numbers_of(a);
  const auto of_b = numbers_of(b);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>(info->binary(static_cast<double>((*of_a)[place_in(i, shape, a.shape)]),
                                        static_cast<double>((*of_b)[place_in(i, shape, b.shape)])));
  }
  return number_array(std::move(shape), std::move(values));
}

Result<ArrayPtr> fold_where(const Array& condition, const Array& a, const Array& b,
                            Allowance& allowance) {
  if (!condition.is_integer || a.is_integer != b.is_integer) {
    return fail(ErrorCode::kUnsupported, "the operands have other types than expected");
  }
  for (const Array* const x : {&condition, &a, &b}) {
    FORETUNE_TRY_STATUS(refuse_empty(*x));
  }
  FORETUNE_TRY(Shape shape, graph::broadcast_shape(a.shape, b.shape));
  FORETUNE_TRY(shape, graph::broadcast_shape(shape, condition.shape));
  FORETUNE_TRY(const ArrayPtr wide_a, fold_expand(a, shape, allowance));
  FORETUNE_TRY(const ArrayPtr wide_b, fold_expand(b, shape, allowance));
  FORETUNE_TRY(const ArrayPtr wide, fold_expand(condition, shape, allowance));
  const std::size_t count = wide->integers.size();
  if (a.is_integer) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = wide->integers[i] != 0 ? wide_a->integers[i] : wide_b->integers[i];
    }
    return integer_array(std::move(shape), std::move(values));
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = wide->integers[i] != 0 ? (*wide_a->numbers)[i] : (*wide_b->numbers)[i];
  }
  return number_array(std::move(shape), std::move(values));
}

Result<ArrayPtr> fold_reshape(const Array& x, Shape shape) {
  if (graph::element_count(shape) != graph::element_count(x.shape)) {
    return fail(ErrorCode::kInvalidArgument, "a constant of ", graph::to_text(x.shape),
                " cannot become ", graph::to_text(shape));
  }
  Array result = x;
  result.shape = std::move(shape);
  return std::make_shared<const Array>(std::move(result));
}

Result<ArrayPtr> fold_transpose(const Array& x, std::span<const std::int64_t> order,
                                Allowance& allowance) {
  FORETUNE_TRY_STATUS(allowance.take(x.shape));
  const std::size_t rank = x.shape.size();
  std::vector<std::size_t> steps(rank, 1);
  for (std::size_t i = rank; i-- > 1;) {
    steps[i - 1] = steps[i] * static_cast<std::size_t>(x.shape[i]);
  }
  Shape shape;
  for (const std::int64_t from : order) {
    shape.push_back(x.shape[static_cast<std::size_t>(from)]);
  }
  const Shape extents = shape;
  return gathered(x, std::move(shape), [&](std::size_t place) {
    std::size_t from = 0;
    for (std::size_t i = rank; i-- > 0;) {
      const auto extent = static_cast<std::size_t>(extents[i]);
      from += place % extent * steps[static_cast<std::size_t>(order[i])];
      place /= extent;
    }
    return from;
  });
}

Result<ArrayPtr> fold_concat(std::span<const ArrayPtr> parts, std::size_t axis,
                             Allowance& allowance) {
  Shape shape = parts[0]->shape;
  const auto extent_from = [&](const Array& part) {
    return graph::element_count(std::span(part.shape).subspan(axis));
  };
  shape[axis] = 0;
  for (const ArrayPtr& part : parts) {
    bool fits = part->shape.size() == shape.size() && part->is_integer == parts[0]->is_integer;
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      fits = i == axis || part->shape[i] == shape[i];
    }
    if (!fits) {
      return fail(ErrorCode::kInvalidArgument, "constants of ", graph::to_text(parts[0]->shape),
                  " and ", graph::to_text(part->shape), " do not fit");
    }
    shape[axis] += part->shape[axis];
  }
  FORETUNE_TRY_STATUS(allowance.take(shape));
  std::vector<std::int64_t> integers;
  std::vector<float> numbers;
  const std::int64_t rows = graph::element_count(std::span(shape).first(axis));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const ArrayPtr& part : parts) {
      const std::int64_t extent = extent_from(*part);
      const std::int64_t first = row * extent;
      if (part->is_integer) {
        integers.insert(integers.end(), part->integers.begin() + first,
                        part->integers.begin() + first + extent);
      } else {
        numbers.insert(numbers.end(), part->numbers->begin() + first,
                       part->numbers->begin() + first + extent);
      }
    }
  }
  return parts[0]->is_integer ? integer_array(std::move(shape), std::move(integers))
                              : number_array(std::move(shape), std::move(numbers));
}

Result<ArrayPtr> fold_take(const Array& x, std::size_t axis, std::span<const std::int64_t> indices,
                           Allowance& allowance) {
  const auto extent = static_cast<std::size_t>(x.shape[axis]);
  for (const std::int64_t index : indices) {
    if (index < 0 || static_cast<std::size_t>(index) >= extent) {
      return fail(ErrorCode::kInvalidArgument, "index ", index, " is not one of ", extent);
    }
  }
  Shape shape = x.shape;
  shape[axis] = static_cast<std::int64_t>(indices.size());
  FORETUNE_TRY_STATUS(allowance.take(shape));
  const auto inner =
      static_cast<std::size_t>(graph::element_count(std::span(x.shape).subspan(axis + 1)));
  return gathered(x, std::move(shape), [&](std::size_t place) {
    const std::size_t row = place / inner;
    const auto index = static_cast<std::size_t>(indices[row % indices.size()]);
    return (row / indices.size() * extent + index) * inner + place % inner;
  });
}

Result<ArrayPtr> fold_expand(const Array& x, std::span<const std::int64_t> shape,
                             Allowance& allowance) {
  FORETUNE_TRY_STATUS(refuse_empty(x));
  FORETUNE_TRY(Shape wide, graph::broadcast_shape(x.shape, shape));
  FORETUNE_TRY_STATUS(allowance.take(wide));
  const Shape extents = wide;
  return gathered(x, std::move(wide),
                  [&](std::size_t place) { return place_in(place, extents, x.shape); });
}

Result<ArrayPtr> to_integers(const Array& x, Allowance& allowance) {
  FORETUNE_TRY_STATUS(allowance.take(x.shape));
  constexpr float kLimit = 9.2e18F;
  std::vector<std::int64_t> values;
  values.reserve(x.numbers->size());
  for (const float value : *x.numbers) {
    if (!(std::abs(value) < kLimit)) {
      return fail(ErrorCode::kInvalidArgument, "no integer holds ", value);
    }
    values.push_back(static_cast<std::int64_t>(value));
  }
  return integer_array(x.shape, std::move(values));
}

}  // namespace foretune::onnx_internal
