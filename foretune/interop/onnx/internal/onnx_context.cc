// Answers to the functions of operators about their node, and the tensors that they make.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/interop/onnx/internal/onnx_converter.h"

namespace foretune::onnx_internal {

using graph::Attributes;
using graph::Shape;

namespace {

bool is_shaping(std::string_view op) {
  return op == "Flatten" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze";
}

}  // namespace

bool NodeContext::has(std::size_t input) const {
  return input < node_.inputs.size() && !node_.inputs[input].empty();
}

Result<Value> NodeContext::value(std::size_t input) {
  if (!has(input)) {
    return fail(ErrorCode::kCorrupt, "input ", input, " is missing");
  }
  return converter_.value(node_.inputs[input]);
}

Result<ArrayPtr> NodeContext::constant(std::size_t input) {
  FORETUNE_TRY(Value x, value(input));
  if (!x.is_constant()) {
    return fail(ErrorCode::kUnsupported, "the input ", foretune::quoted(node_.inputs[input]),
                " is not constant");
  }
  return std::move(x.array);
}

Result<std::vector<std::int64_t>> NodeContext::integers(std::size_t input) {
  FORETUNE_TRY(const ArrayPtr array, constant(input));
  if (!array->is_integer || array->shape.size() > 1) {
    return fail(ErrorCode::kInvalidArgument, "the input ", foretune::quoted(node_.inputs[input]),
                " is no list of integers");
  }
  return array->integers;
}

Result<double> NodeContext::number(std::size_t input) {
  FORETUNE_TRY(const ArrayPtr array, constant(input));
  const auto numbers = numbers_of(*array);
  if (numbers->size() != 1) {
    return fail(ErrorCode::kUnsupported, "the input ", foretune::quoted(node_.inputs[input]),
                " is not one number");
  }
  return static_cast<double>(numbers->front());
}

const AttributeData* NodeContext::attribute(const std::string& name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

std::int64_t NodeContext::integer_or(const std::string& name, std::int64_t fallback) const {
  const AttributeData* const found = attribute(name);
  return found == nullptr ? fallback : found->integer;
}

double NodeContext::number_or(const std::string& name, double fallback) const {
  const AttributeData* const found = attribute(name);
  return found == nullptr ? fallback : found->number;
}

std::string NodeContext::text_or(const std::string& name, std::string_view fallback) const {
  const AttributeData* const found = attribute(name);
  return found == nullptr ? std::string(fallback) : found->text;
}

Result<std::optional<std::vector<std::int64_t>>> NodeContext::listed(const std::string& name,
                                                                     std::size_t input) {
  if (const AttributeData* const found = attribute(name)) {
    return found->integers;
  }
  if (!has(input)) {
    return std::nullopt;
  }
  FORETUNE_TRY(auto list, integers(input));
  return list;
}

Result<std::size_t> NodeContext::axis_of(std::int64_t axis, std::size_t rank) {
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent || axis >= extent) {
    return fail(ErrorCode::kInvalidArgument, "axis ", axis, " of ", rank, " dimensions");
  }
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

Result<Value> NodeContext::add(std::string_view op, std::span<const Value> inputs,
                               Attributes attributes) {
  std::vector<graph::TensorId> ids;
  for (const Value& input : inputs) {
    ids.push_back(converter_.tensor(input));
  }
  std::string name = !node_.name.empty()     ? node_.name
                     : node_.outputs.empty() ? std::string(op)
                                             : node_.outputs[0];
  // The node's own operation keeps its name, where others only prepare the shapes.
  if (op == "reshape" && !is_shaping(node_.op)) {
    name += "_shape";
  }
  const graph::TensorId id =
      converter_.builder_.add(op, name, std::move(ids), std::move(attributes));
  if (id == graph::kNoTensor) {
    // The builder keeps its first error and names the node, as our caller does.
    Error error = converter_.builder_.finish({}).error();
    const std::size_t end = error.message.find(": ");
    if (error.message.starts_with(name) && end != std::string::npos) {
      error.message.erase(0, end + 2);
    }
    return tl::unexpected<Error>(std::move(error));
  }
  return Value{.id = id};
}

Result<Value> NodeContext::unary(std::string_view op, const Value& x, Attributes attributes) {
  if (!x.is_constant()) {
    return add(op, {x}, std::move(attributes));
  }
  FORETUNE_TRY(ArrayPtr array,
               fold_unary(graph::find_op(op)->unary, attributes, *x.array, allowance()));
  return Value{.array = std::move(array)};
}

Result<Value> NodeContext::binary(std::string_view op, Value a, Value b) {
  if (a.is_constant() && b.is_constant()) {
    FORETUNE_TRY(ArrayPtr array, fold_binary(op, *a.array, *b.array, allowance()));
    return Value{.array = std::move(array)};
  }
  const std::size_t rank = std::max(shape(a).size(), shape(b).size());
  for (Value* const operand : {&a, &b}) {
    if (!operand->is_constant()) {
      FORETUNE_TRY(*operand, raised(*operand, rank));
    }
  }
  return add(op, {a, b});
}

Result<Value> NodeContext::raised(const Value& x, std::size_t rank) {
  Shape extents = shape(x);
  if (extents.size() >= rank) {
    return x;
  }
  extents.insert(extents.begin(), rank - extents.size(), 1);
  return reshape(x, std::move(extents));
}

Result<Value> NodeContext::reshape(const Value& x, Shape to) {
  if (x.is_constant()) {
    FORETUNE_TRY(ArrayPtr array, fold_reshape(*x.array, std::move(to)));
    return Value{.array = std::move(array)};
  }
  if (to == shape(x)) {
    return x;
  }
  return add("reshape", {x}, {.integers = std::move(to)});
}

Result<std::optional<Value>> NodeContext::lifted(const Value& x) {
  Shape extents = shape(x);
  if (x.is_constant() || extents.empty() || extents[0] == 1 || extents.size() >= graph::kMaxRank) {
    return std::nullopt;
  }
  extents.insert(extents.begin(), 1);
  FORETUNE_TRY(Value high, reshape(x, std::move(extents)));
  return high;
}

Result<Value> NodeContext::transpose(const Value& x, const std::vector<std::int64_t>& order) {
  const Shape from = shape(x);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_order = sorted.size() == from.size();
  for (std::size_t i = 0; is_order && i < sorted.size(); ++i) {
    is_order = sorted[i] == static_cast<std::int64_t>(i);
  }
  if (!is_order) {
    return fail(ErrorCode::kInvalidArgument, "the order of ", order.size(),
                " dimensions does not fit ", graph::to_text(from));
  }
  if (x.is_constant()) {
    FORETUNE_TRY(ArrayPtr array, fold_transpose(*x.array, order, allowance()));
    return Value{.array = std::move(array)};
  }
  // Dimensions of 1 may go anywhere, as elements keep their places.
  Shape to;
  std::int64_t last = -1;
  bool moves = false;
  for (const std::int64_t dimension : order) {
    const std::int64_t extent = from[static_cast<std::size_t>(dimension)];
    to.push_back(extent);
    if (extent > 1) {
      moves = moves || dimension < last;
      last = dimension;
    }
  }
  if (!moves) {
    return reshape(x, std::move(to));
  }
  if (order[0] != 0 && from[0] == 1) {
    // The batch stays first, and the others get their order.
    std::vector<std::int64_t> kept{0};
    std::copy_if(order.begin(), order.end(), std::back_inserter(kept),
                 [](std::int64_t dimension) { return dimension != 0; });
    FORETUNE_TRY(const Value turned, add("transpose", {x}, {.integers = kept}));
    return reshape(turned, std::move(to));
  }
  if (order[0] != 0) {
    FORETUNE_TRY(const std::optional<Value> high, lifted(x));
    if (high) {
      std::vector<std::int64_t> shifted{0};
      for (const std::int64_t dimension : order) {
        shifted.push_back(dimension + 1);
      }
      FORETUNE_TRY(const Value turned, add("transpose", {*high}, {.integers = shifted}));
      return reshape(turned, std::move(to));
    }
  }
  return add("transpose", {x}, {.integers = order});
}

Result<Value> NodeContext::slice(const Value& x, std::size_t axis, std::int64_t begin,
                                 std::int64_t end, std::int64_t step) {
  Shape extents = shape(x);
  if (begin == 0 && end == extents[axis] && step == 1) {
    return x;
  }
  if (x.is_constant()) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      indices.push_back(i);
    }
    FORETUNE_TRY(ArrayPtr array, fold_take(*x.array, axis, indices, allowance()));
    return Value{.array = std::move(array)};
  }
  if (step < 1 || end <= begin) {
    return fail(ErrorCode::kUnsupported, "the part from ", begin, " to ", end, " by ", step,
                " is empty or turned around");
  }
  if (axis == 0) {
    FORETUNE_TRY(const std::optional<Value> high, lifted(x));
    if (high) {
      FORETUNE_TRY(const Value part, slice(*high, 1, begin, end, step));
      extents[0] = shape(part)[1];
      return reshape(part, std::move(extents));
    }
  }
  return add("slice", {x}, {.integers = {static_cast<std::int64_t>(axis), begin, end, step}});
}

Result<Value> NodeContext::concat(std::vector<Value> parts, std::size_t axis) {
  if (parts.size() == 1) {
    return parts[0];
  }
  const auto is_constant = [](const Value& part) { return part.is_constant(); };
  if (std::all_of(parts.begin(), parts.end(), is_constant)) {
    std::vector<ArrayPtr> arrays;
    for (const Value& part : parts) {
      arrays.push_back(part.array);
    }
    FORETUNE_TRY(ArrayPtr array, fold_concat(arrays, axis, allowance()));
    return Value{.array = std::move(array)};
  }
  const bool lifts = axis == 0 && std::any_of(parts.begin(), parts.end(), [&](const Value& part) {
                       return !part.is_constant() && shape(part)[0] > 1;
                     });
  if (!lifts) {
    return add("concat", parts, {.integers = {static_cast<std::int64_t>(axis)}});
  }
  for (Value& part : parts) {
    FORETUNE_TRY(part, raised(part, shape(part).size() + 1));
  }
  FORETUNE_TRY(const Value whole, add("concat", parts, {.integers = {1}}));
  const Shape extents = shape(whole);
  return reshape(whole, Shape(extents.begin() + 1, extents.end()));
}

Result<Value> NodeContext::reduce(std::string_view op, const Value& x,
                                  std::vector<std::int64_t> axes, bool keep) {
  if (std::find(axes.begin(), axes.end(), 0) != axes.end()) {
    FORETUNE_TRY(const std::optional<Value> high, lifted(x));
    if (!high) {
      return fail(ErrorCode::kUnsupported, "the reduction goes over the batch");
    }
    for (std::int64_t& axis : axes) {
      ++axis;
    }
    FORETUNE_TRY(const Value part, reduce(op, *high, std::move(axes), keep));
    Shape extents = shape(part);
    if (extents.size() > 1) {
      extents.erase(extents.begin());
    }
    return reshape(part, std::move(extents));
  }
  std::vector<std::int64_t> integers{keep ? 1 : 0};
  integers.insert(integers.end(), axes.begin(), axes.end());
  return add(op, {x}, {.integers = std::move(integers)});
}

Result<Value> NodeContext::softmax(const Value& x, std::size_t axis) {
  if (axis == 0) {
    FORETUNE_TRY(const std::optional<Value> high, lifted(x));
    if (high) {
      FORETUNE_TRY(const Value part, softmax(*high, 1));
      return reshape(part, Shape(shape(x)));
    }
  }
  return add("softmax", {x}, {.integers = {static_cast<std::int64_t>(axis)}});
}

bool NodeContext::wants(std::size_t output) const {
  return output < node_.outputs.size() && !node_.outputs[output].empty() &&
         converter_.needed_.contains(node_.outputs[output]);
}

void NodeContext::give(Value value, std::size_t output) {
  if (output < node_.outputs.size()) {
    converter_.values_[node_.outputs[output]] = value;
  }
  if (!output_.empty()) {
    converter_.values_[output_] = std::move(value);
  }
}

Result<std::optional<Value>> NodeContext::take_bias(std::int64_t size) {
  const auto readers = converter_.readers_.find(node_.outputs[0]);
  if (readers == converter_.readers_.end() || readers->second.size() != 1) {
    return std::nullopt;
  }
  const std::size_t position = readers->second[0];
  const auto& nodes = converter_.model_.nodes;
  if (position >= nodes.size()) {
    return std::nullopt;
  }
  const NodeData& reader = nodes[position];
  if (reader.op != "Add" || reader.domain != node_.domain || reader.inputs.size() != 2 ||
      reader.outputs.size() != 1 || !reader.attributes.empty() ||
      converter_.values_.contains(reader.outputs[0])) {
    return std::nullopt;
  }
  const std::string& other = reader.inputs[reader.inputs[0] == node_.outputs[0] ? 1 : 0];
  if (!converter_.values_.contains(other) && !converter_.model_.initializers.contains(other)) {
    return std::nullopt;
  }
  FORETUNE_TRY(Value bias, converter_.value(other));
  if (!bias.is_constant() || bias.array->shape != Shape{size}) {
    return std::nullopt;
  }
  converter_.done_.insert(position);
  output_ = reader.outputs[0];
  return bias;
}

}  // namespace foretune::onnx_internal
