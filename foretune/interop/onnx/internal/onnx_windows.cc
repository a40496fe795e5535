// Convolutions and pooling. One dimension becomes two of which the first is 1.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

constexpr std::int64_t kMaxSide = 1 << 16U;

// A number for each of the two dimensions.
struct Sides {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> begins;  // padding
  std::vector<std::int64_t> ends;
};

Result<std::vector<std::int64_t>> side_numbers(const NodeContext& context, const std::string& name,
                                               std::size_t count, std::int64_t fallback) {
  const AttributeData* const found = context.attribute(name);
  std::vector<std::int64_t> numbers =
      found == nullptr ? std::vector<std::int64_t>(count, fallback) : found->integers;
  if (numbers.size() != count) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(name), " has ", numbers.size(),
                " numbers, not ", count);
  }
  for (const std::int64_t number : numbers) {
    if (number < fallback || number > kMaxSide) {
      return fail(ErrorCode::kUnsupported, foretune::quoted(name), " has the number ", number);
    }
  }
  return numbers;
}

// Sets the padding that makes the extents of the result those of the input by the strides.
void pad_same(Sides& sides, std::span<const std::int64_t> extents, bool is_upper) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t wanted = (extents[i] + sides.strides[i] - 1) / sides.strides[i];
    const std::int64_t span = (sides.kernel[i] - 1) * sides.dilations[i] + 1;
    const std::int64_t missing = (wanted - 1) * sides.strides[i] + span - extents[i];
    const std::int64_t padding = std::max<std::int64_t>(missing, 0);
    sides.begins[i] = is_upper ? padding / 2 : padding - padding / 2;
    sides.ends[i] = padding - sides.begins[i];
  }
}

// `extents` are those of the input without batch and channels.
Result<Sides> read_sides(const NodeContext& context, std::vector<std::int64_t> kernel,
                         std::span<const std::int64_t> extents) {
  const std::size_t count = extents.size();
  Sides sides{.kernel = std::move(kernel)};
  if (sides.kernel.size() != count) {
    return fail(ErrorCode::kInvalidArgument, "a window of ", sides.kernel.size(),
                " dimensions does not fit an input of ", count);
  }
  for (const std::int64_t side : sides.kernel) {
    if (side < 1 || side > kMaxSide) {
      return fail(ErrorCode::kUnsupported, "a window has a side of ", side);
    }
  }
  FORETUNE_TRY(sides.strides, side_numbers(context, "strides", count, 1));
  FORETUNE_TRY(sides.dilations, side_numbers(context, "dilations", count, 1));
  FORETUNE_TRY(const std::vector<std::int64_t> pads, side_numbers(context, "pads", 2 * count, 0));
  sides.begins.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
  sides.ends.assign(pads.begin() + static_cast<std::ptrdiff_t>(count), pads.end());
  const std::string automatic = context.text_or("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    pad_same(sides, extents, automatic == "SAME_UPPER");
  } else if (automatic == "VALID") {
    sides.begins.assign(count, 0);
    sides.ends.assign(count, 0);
  } else if (automatic != "NOTSET" && !automatic.empty()) {
    return fail(ErrorCode::kUnsupported, "auto_pad is ", foretune::quoted(automatic));
  }
  if (count == 1) {
    for (auto* const numbers : {&sides.kernel, &sides.strides, &sides.dilations}) {
      numbers->insert(numbers->begin(), 1);
    }
    sides.begins.insert(sides.begins.begin(), 0);
    sides.ends.insert(sides.ends.begin(), 0);
  }
  return sides;
}

// Strides, padding and dilations in the order of the attributes of networks.
std::vector<std::int64_t> ordered(const Sides& sides) {
  return {sides.strides[0], sides.strides[1], sides.begins[0],    sides.begins[1],
          sides.ends[0],    sides.ends[1],    sides.dilations[0], sides.dilations[1]};
}

Status check_rank(const Shape& shape) {
  if (shape.size() != 3 && shape.size() != 4) {
    return fail(ErrorCode::kUnsupported, "an input of ", graph::to_text(shape),
                " has not one or two dimensions beside batch and channels");
  }
  return {};
}

// Inserts or removes the extent of 1.
Result<Value> widened(NodeContext& context, const Value& x) {
  Shape shape = context.shape(x);
  if (shape.size() != 3) {
    return x;
  }
  shape.insert(shape.begin() + 2, 1);
  return context.reshape(x, std::move(shape));
}

Result<Value> narrowed(NodeContext& context, const Value& x, std::size_t rank) {
  Shape shape = context.shape(x);
  if (rank != 3) {
    return x;
  }
  shape.erase(shape.begin() + 2);
  return context.reshape(x, std::move(shape));
}

std::span<const std::int64_t> points(const Shape& shape) { return std::span(shape).subspan(2); }

}  // namespace

Status convert_conv(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const ArrayPtr weights, context.constant(1));
  const Shape shape = context.shape(x);
  FORETUNE_TRY_STATUS(check_rank(shape));
  if (weights->shape.size() != shape.size()) {
    return fail(ErrorCode::kInvalidArgument, "weights ", graph::to_text(weights->shape),
                " do not fit an input of ", graph::to_text(shape));
  }
  const std::span<const std::int64_t> kernel = points(weights->shape);
  FORETUNE_TRY(const Sides sides,
               read_sides(context, {kernel.begin(), kernel.end()}, points(shape)));
  std::vector<std::int64_t> integers = ordered(sides);
  integers.push_back(context.integer_or("group", 1));
  std::vector<Value> inputs(2);
  FORETUNE_TRY(inputs[0], widened(context, x));
  FORETUNE_TRY(inputs[1], widened(context, Value{.array = weights}));
  if (context.has(2)) {
    FORETUNE_TRY(ArrayPtr bias, context.constant(2));
    inputs.push_back(Value{.array = std::move(bias)});
  }
  FORETUNE_TRY(const Value sums, context.add("conv", inputs, {.integers = std::move(integers)}));
  FORETUNE_TRY(Value result, narrowed(context, sums, shape.size()));
  context.give(std::move(result));
  return {};
}

Status convert_pool(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  FORETUNE_TRY_STATUS(check_rank(shape));
  const AttributeData* const kernel = context.attribute("kernel_shape");
  if (kernel == nullptr) {
    return fail(ErrorCode::kCorrupt, "kernel_shape is missing");
  }
  FORETUNE_TRY(const Sides sides, read_sides(context, kernel->integers, points(shape)));
  std::vector<std::int64_t> integers = sides.kernel;
  const std::vector<std::int64_t> rest = ordered(sides);
  integers.insert(integers.end(), rest.begin(), rest.end());
  integers.push_back(context.integer_or("ceil_mode", 0) != 0 ? 1 : 0);
  integers.push_back(context.integer_or("count_include_pad", 0) != 0 ? 1 : 0);
  FORETUNE_TRY(const Value wide, widened(context, x));
  const bool is_max = context.node().op == "MaxPool";
  FORETUNE_TRY(const Value pooled, context.add(is_max ? "max_pool" : "average_pool", {wide},
                                               {.integers = std::move(integers)}));
  FORETUNE_TRY(Value result, narrowed(context, pooled, shape.size()));
  context.give(std::move(result));
  return {};
}

Status convert_global_pool(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  std::vector<std::int64_t> axes;
  for (std::size_t i = 2; i < context.shape(x).size(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
  }
  const bool is_max = context.node().op == "GlobalMaxPool";
  FORETUNE_TRY(Value result,
               context.reduce(is_max ? "reduce_max" : "reduce_mean", x, std::move(axes), true));
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
