// Operators that disappear: what they make is known while a model is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

template <class T>
std::vector<float> narrowed_numbers(const std::vector<T>& values) {
  std::vector<float> numbers;
  for (const T value : values) {
    numbers.push_back(static_cast<float>(value));
  }
  return numbers;
}

}  // namespace

Status convert_identity(NodeContext& context) {
  FORETUNE_TRY(Value x, context.value(0));
  context.give(std::move(x));
  return {};
}

Status convert_dropout(NodeContext& context) {
  if (context.has(2)) {
    FORETUNE_TRY(const double is_training, context.number(2));
    if (is_training != 0) {
      return fail(ErrorCode::kUnsupported, "the node is for training");
    }
  }
  return convert_identity(context);
}

Status convert_cast(NodeContext& context) {
  FORETUNE_TRY(Value x, context.value(0));
  const std::int64_t number = context.integer_or("to", 0);
  const ElementType to = element_type(number);
  if (to == ElementType::kOther || to == ElementType::kBool ||
      (!x.is_constant() && !is_floating(to))) {
    return fail(ErrorCode::kUnsupported, "elements become ONNX's type ", number);
  }
  if (x.is_constant() && x.array->is_integer && is_floating(to)) {
    FORETUNE_TRY_STATUS(context.allowance().take(x.array->shape));
    x.array = number_array(x.array->shape, *numbers_of(*x.array));
  } else if (x.is_constant() && !x.array->is_integer && !is_floating(to)) {
    FORETUNE_TRY(x.array, to_integers(*x.array, context.allowance()));
  }
  context.give(std::move(x));
  return {};
}

Status convert_constant(NodeContext& context) {
  Value result;
  if (const auto* const tensor = context.attribute("value");
      tensor != nullptr && !tensor->tensors.empty()) {
    FORETUNE_TRY(result.array, decode(tensor->tensors[0], context.allowance()));
  } else if (const auto* const number = context.attribute("value_float")) {
    result.array = number_array({}, {static_cast<float>(number->number)});
  } else if (const auto* const integer = context.attribute("value_int")) {
    result.array = integer_array({}, {integer->integer});
  } else if (const auto* const numbers = context.attribute("value_floats")) {
    result.array = number_array({static_cast<std::int64_t>(numbers->numbers.size())},
                                narrowed_numbers(numbers->numbers));
  } else if (const auto* const integers = context.attribute("value_ints")) {
    result.array =
        integer_array({static_cast<std::int64_t>(integers->integers.size())}, integers->integers);
  } else {
    return fail(ErrorCode::kUnsupported, "the constant is neither numbers nor integers");
  }
  context.give(std::move(result));
  return {};
}

Status convert_constant_of_shape(NodeContext& context) {
  FORETUNE_TRY(const std::vector<std::int64_t> shape, context.integers(0));
  FORETUNE_TRY_STATUS(context.allowance().take(shape));
  const auto count = static_cast<std::size_t>(graph::element_count(shape));
  const AttributeData* const found = context.attribute("value");
  Value result;
  if (found == nullptr || found->tensors.empty()) {
    result.array = number_array(shape, std::vector<float>(count, 0.0F));
  } else {
    FORETUNE_TRY(const ArrayPtr value, decode(found->tensors[0], context.allowance()));
    if (graph::element_count(value->shape) != 1) {
      return fail(ErrorCode::kInvalidArgument, "the value is not one number");
    }
    result.array = value->is_integer
                       ? integer_array(shape, std::vector<std::int64_t>(count, value->integers[0]))
                       : number_array(shape, std::vector<float>(count, value->numbers->front()));
  }
  context.give(std::move(result));
  return {};
}

Status convert_shape(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [&](std::int64_t number) {
    return std::clamp<std::int64_t>(number < 0 ? number + rank : number, 0, rank);
  };
  const std::int64_t first = place(context.integer_or("start", 0));
  const std::int64_t last = std::max(first, place(context.integer_or("end", rank)));
  context.give(
      {.array = integer_array({last - first}, Shape(shape.begin() + first, shape.begin() + last))});
  return {};
}

Status convert_equal(NodeContext& context) {
  FORETUNE_TRY(const ArrayPtr a, context.constant(0));
  FORETUNE_TRY(const ArrayPtr b, context.constant(1));
  FORETUNE_TRY(ArrayPtr result, fold_binary("equal", *a, *b, context.allowance()));
  context.give({.array = std::move(result)});
  return {};
}

Status convert_mod(NodeContext& context) {
  FORETUNE_TRY(const ArrayPtr a, context.constant(0));
  FORETUNE_TRY(const ArrayPtr b, context.constant(1));
  if (!a->is_integer || !b->is_integer) {
    return fail(ErrorCode::kUnsupported, "the operands are no integers");
  }
  const std::string_view op = context.integer_or("fmod", 0) != 0 ? "fmod" : "mod";
  FORETUNE_TRY(ArrayPtr result, fold_binary(op, *a, *b, context.allowance()));
  context.give({.array = std::move(result)});
  return {};
}

Status convert_where(NodeContext& context) {
  FORETUNE_TRY(const ArrayPtr condition, context.constant(0));
  FORETUNE_TRY(const ArrayPtr a, context.constant(1));
  FORETUNE_TRY(const ArrayPtr b, context.constant(2));
  FORETUNE_TRY(ArrayPtr result, fold_where(*condition, *a, *b, context.allowance()));
  context.give({.array = std::move(result)});
  return {};
}

// A computed operand is added to zeros of the shape.
Status convert_expand(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const std::vector<std::int64_t> shape, context.integers(1));
  Value result;
  if (x.is_constant()) {
    FORETUNE_TRY(result.array, fold_expand(*x.array, shape, context.allowance()));
  } else {
    FORETUNE_TRY_STATUS(context.allowance().take(shape));
    const auto count = static_cast<std::size_t>(graph::element_count(shape));
    FORETUNE_TRY(
        result,
        context.binary("add", x, NodeContext::numbers(shape, std::vector<float>(count, 0.0F))));
  }
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
