// Operators that move elements.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

// Rows that are gathered in no regular order become slices side by side, up to this many.
constexpr std::size_t kMaxGathered = 256;

Result<std::set<std::size_t>> axes_of(std::span<const std::int64_t> axes, std::size_t rank) {
  std::set<std::size_t> places;
  for (const std::int64_t axis : axes) {
    FORETUNE_TRY(const std::size_t place, NodeContext::axis_of(axis, rank));
    places.insert(place);
  }
  return places;
}

// Replaces 0 and -1 as Reshape does.
Result<Shape> reshape_target(const Shape& from, std::vector<std::int64_t> wanted,
                             bool zero_is_kept) {
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !zero_is_kept && i < from.size()) {
      wanted[i] = from[i];
    }
    if (wanted[i] == -1 && !open) {
      open = i;
    } else if (wanted[i] < 1 || wanted[i] > graph::kMaxElements ||
               known > graph::kMaxElements / wanted[i]) {
      return fail(ErrorCode::kInvalidArgument, "an input of ", graph::to_text(from),
                  " cannot become ", graph::to_text(wanted));
    } else {
      known *= wanted[i];
    }
  }
  if (open) {
    wanted[*open] = std::max<std::int64_t>(graph::element_count(from) / known, 1);
  }
  return wanted;
}

std::int64_t clamped(std::int64_t place, std::int64_t extent, std::int64_t low, std::int64_t high) {
  // Adding cannot overflow, as extents are small.
  return std::clamp(place < 0 ? place + extent : place, low, high);
}

}  // namespace

Status convert_reshape(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const auto wanted, context.listed("shape", 1));
  if (!wanted) {
    return fail(ErrorCode::kCorrupt, "the shape is missing");
  }
  const Shape& from = context.shape(x);
  const bool zero_is_kept = context.integer_or("allowzero", 0) != 0;
  std::vector<std::int64_t> target = *wanted;
  // A batch that the file fixes is 1 here.
  const std::int64_t batch = context.batch();
  if (!x.is_constant() && batch > 1 && !target.empty() && target[0] > 0 && target[0] % batch == 0) {
    target[0] /= batch;
  }
  FORETUNE_TRY(Shape shape, reshape_target(from, std::move(target), zero_is_kept));
  FORETUNE_TRY(Value result, context.reshape(x, std::move(shape)));
  context.give(std::move(result));
  return {};
}

Status convert_flatten(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  const std::int64_t axis = context.integer_or("axis", 1);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis > rank) {
    return fail(ErrorCode::kInvalidArgument, "axis ", axis, " of ", rank, " dimensions");
  }
  const auto place = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  FORETUNE_TRY(Value result,
               context.reshape(x, {graph::element_count(std::span(shape).first(place)),
                                   graph::element_count(std::span(shape).subspan(place))}));
  context.give(std::move(result));
  return {};
}

Status convert_squeeze(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  FORETUNE_TRY(const auto listed, context.listed("axes", 1));
  std::set<std::size_t> axes;
  if (listed) {
    FORETUNE_TRY(axes, axes_of(*listed, shape.size()));
  } else {
    // The dimension of the batch stays, as it is 1 for one image only.
    for (std::size_t i = x.is_constant() ? 0 : 1; i < shape.size(); ++i) {
      if (shape[i] == 1) {
        axes.insert(i);
      }
    }
  }
  Shape squeezed;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!axes.contains(i)) {
      squeezed.push_back(shape[i]);
    } else if (shape[i] != 1) {
      return fail(ErrorCode::kInvalidArgument, "dimension ", i, " of ", graph::to_text(shape),
                  " is not 1");
    }
  }
  FORETUNE_TRY(Value result, context.reshape(x, std::move(squeezed)));
  context.give(std::move(result));
  return {};
}

Status convert_unsqueeze(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const auto listed, context.listed("axes", 1));
  if (!listed || listed->size() > graph::kMaxRank) {
    return fail(ErrorCode::kUnsupported, "the axes are missing or too many");
  }
  Shape shape = context.shape(x);
  FORETUNE_TRY(const auto axes, axes_of(*listed, shape.size() + listed->size()));
  for (const std::size_t axis : axes) {
    if (axis > shape.size()) {
      return fail(ErrorCode::kInvalidArgument, "an axis is named twice");
    }
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  }
  FORETUNE_TRY(Value result, context.reshape(x, std::move(shape)));
  context.give(std::move(result));
  return {};
}

Status convert_transpose(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  std::vector<std::int64_t> order;
  if (const AttributeData* const found = context.attribute("perm")) {
    order = found->integers;
  } else {
    for (std::size_t i = context.shape(x).size(); i-- > 0;) {
      order.push_back(static_cast<std::int64_t>(i));
    }
  }
  FORETUNE_TRY(Value result, context.transpose(x, order));
  context.give(std::move(result));
  return {};
}

Status convert_concat(NodeContext& context) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < context.node().inputs.size(); ++i) {
    FORETUNE_TRY(Value part, context.value(i));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) {
    return fail(ErrorCode::kCorrupt, "nothing is concatenated");
  }
  FORETUNE_TRY(const std::size_t axis,
               NodeContext::axis_of(context.integer_or("axis", 1), context.shape(parts[0]).size()));
  FORETUNE_TRY(Value result, context.concat(std::move(parts), axis));
  context.give(std::move(result));
  return {};
}

Status convert_slice(NodeContext& context) {
  FORETUNE_TRY(Value x, context.value(0));
  FORETUNE_TRY(const auto starts, context.listed("starts", 1));
  FORETUNE_TRY(const auto ends, context.listed("ends", 2));
  FORETUNE_TRY(auto axes, context.listed("axes", 3));
  FORETUNE_TRY(auto steps, context.listed("steps", 4));
  if (!starts || !ends) {
    return fail(ErrorCode::kCorrupt, "starts or ends are missing");
  }
  const std::size_t rank = context.shape(x).size();
  const std::size_t count = starts->size();
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < count; ++i) {
      axes->push_back(static_cast<std::int64_t>(i));
    }
  }
  if (!steps) {
    steps.emplace(count, 1);
  }
  if (ends->size() != count || axes->size() != count || steps->size() != count) {
    return fail(ErrorCode::kInvalidArgument, "starts, ends, axes and steps differ in number");
  }
  for (std::size_t i = 0; i < count; ++i) {
    FORETUNE_TRY(const std::size_t axis, NodeContext::axis_of((*axes)[i], rank));
    const std::int64_t extent = context.shape(x)[axis];
    if (extent == 0) {
      continue;
    }
    const std::int64_t limit = extent + 1;
    const std::int64_t step = std::clamp((*steps)[i], -limit, limit);
    if (step == 0) {
      return fail(ErrorCode::kInvalidArgument, "a step is 0");
    }
    const bool is_forward = step > 0;
    const std::int64_t begin = clamped((*starts)[i], extent, 0, is_forward ? extent : extent - 1);
    const std::int64_t end =
        clamped((*ends)[i], extent, is_forward ? 0 : -1, is_forward ? extent : extent - 1);
    FORETUNE_TRY(x, context.slice(x, axis, begin, end, step));
  }
  context.give(std::move(x));
  return {};
}

Status convert_split(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  FORETUNE_TRY(const std::size_t axis,
               NodeContext::axis_of(context.integer_or("axis", 0), shape.size()));
  FORETUNE_TRY(const auto listed, context.listed("split", 1));
  const std::size_t count = context.node().outputs.size();
  std::vector<std::int64_t> extents;
  if (listed) {
    extents = *listed;
  } else {
    const auto parts = static_cast<std::int64_t>(count);
    const std::int64_t each = (shape[axis] + parts - 1) / parts;
    for (std::int64_t left = shape[axis]; left > 0; left -= each) {
      extents.push_back(std::min(each, left));
    }
  }
  if (extents.size() != count) {
    return fail(ErrorCode::kInvalidArgument, shape[axis], " points do not become ", count,
                " parts");
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (extents[i] < 0 || extents[i] > shape[axis] - begin) {
      return fail(ErrorCode::kInvalidArgument, "the parts do not fit ", shape[axis], " points");
    }
    if (context.wants(i)) {
      FORETUNE_TRY(Value part, context.slice(x, axis, begin, begin + extents[i], 1));
      context.give(std::move(part), i);
    }
    begin += extents[i];
  }
  return {};
}

Status convert_gather(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  FORETUNE_TRY(const ArrayPtr wanted, context.constant(1));
  const Shape shape = context.shape(x);
  FORETUNE_TRY(const std::size_t axis,
               NodeContext::axis_of(context.integer_or("axis", 0), shape.size()));
  if (!wanted->is_integer || wanted->integers.empty()) {
    return fail(ErrorCode::kUnsupported, "the indices are no integers");
  }
  std::vector<std::int64_t> indices = wanted->integers;
  for (std::int64_t& index : indices) {
    index += index < 0 ? shape[axis] : 0;
    if (index < 0 || index >= shape[axis]) {
      return fail(ErrorCode::kInvalidArgument, "an index is outside of ", shape[axis], " points");
    }
  }
  Value rows;
  const std::int64_t step = indices.size() > 1 ? indices[1] - indices[0] : 1;
  bool is_regular = step > 0;
  for (std::size_t i = 1; is_regular && i < indices.size(); ++i) {
    is_regular = indices[i] - indices[i - 1] == step;
  }
  if (x.is_constant()) {
    FORETUNE_TRY(ArrayPtr array, fold_take(*x.array, axis, indices, context.allowance()));
    rows = {.array = std::move(array)};
  } else if (is_regular) {
    FORETUNE_TRY(rows, context.slice(x, axis, indices.front(), indices.back() + 1, step));
  } else if (indices.size() > kMaxGathered) {
    return fail(ErrorCode::kUnsupported, indices.size(), " rows are gathered in no regular order");
  } else {
    std::vector<Value> parts;
    for (const std::int64_t index : indices) {
      FORETUNE_TRY(Value part, context.slice(x, axis, index, index + 1, 1));
      parts.push_back(std::move(part));
    }
    FORETUNE_TRY(rows, context.concat(std::move(parts), axis));
  }
  Shape result = shape;
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), wanted->shape.begin(),
                wanted->shape.end());
  FORETUNE_TRY(Value gathered, context.reshape(rows, std::move(result)));
  context.give(std::move(gathered));
  return {};
}

Status convert_pad(NodeContext& context) {
  FORETUNE_TRY(const Value x, context.value(0));
  const Shape shape = context.shape(x);
  const std::string mode = context.text_or("mode", "constant");
  if (mode != "constant") {
    return fail(ErrorCode::kUnsupported, "the mode is ", foretune::quoted(mode));
  }
  const bool is_first_opset = context.attribute("paddings") != nullptr;
  FORETUNE_TRY(const auto listed, context.listed(is_first_opset ? "paddings" : "pads", 1));
  if (!listed) {
    return fail(ErrorCode::kCorrupt, "the pads are missing");
  }
  double number = context.number_or("value", 0);
  if (context.has(2)) {
    FORETUNE_TRY(number, context.number(2));
  }
  std::vector<std::int64_t> pads = *listed;
  if (context.has(3)) {
    FORETUNE_TRY(const std::vector<std::int64_t> axes, context.integers(3));
    if (pads.size() != 2 * axes.size()) {
      return fail(ErrorCode::kInvalidArgument, "pads and axes differ in number");
    }
    std::vector<std::int64_t> all(2 * shape.size(), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      FORETUNE_TRY(const std::size_t axis, NodeContext::axis_of(axes[i], shape.size()));
      all[axis] = pads[i];
      all[axis + shape.size()] = pads[i + axes.size()];
    }
    pads = std::move(all);
  }
  Value result = x;
  if (!std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; })) {
    FORETUNE_TRY(result,
                 context.add("pad", {x}, {.integers = std::move(pads), .numbers = {number}}));
  }
  context.give(std::move(result));
  return {};
}

}  // namespace foretune::onnx_internal
