#include "foretune/interop/onnx/internal/onnx_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace foretune::onnx_internal {

namespace {

using graph::Shape;

std::int64_t points_ahead(std::span<const std::int64_t> shape, const BatchPlace& place) {
  return graph::element_count(shape.first(std::min(place.axis, shape.size()))) * place.inside;
}

// Counts an axis from the front; axes that do not exist have been refused.
std::size_t from_front(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

std::set<std::size_t> front_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::set<std::size_t> places;
  for (const std::int64_t axis : axes) {
    places.insert(from_front(axis, rank));
  }
  return places;
}

bool are_alike(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// A reshape keeps the order of the elements, so as many points lie before the batch. Several
// dimensions may have it there; `wanted` is the shape as the model has it, with 0 and -1.
BatchPlace reshaped(std::span<const std::int64_t> from, const BatchPlace& place,
                    std::span<const std::int64_t> to, std::span<const std::int64_t> wanted) {
  const std::int64_t before = points_ahead(from, place);
  const std::span<const std::int64_t> own_ahead = from.first(std::min(place.axis, from.size()));
  const std::span<const std::int64_t> own_behind =
      from.subspan(std::min(place.axis + 1, from.size()));
  std::vector<BatchPlace> possible;
  std::int64_t sofar = 1;
  for (std::size_t axis = 0; axis < to.size() && sofar <= before; ++axis) {
    if (before % sofar == 0 && to[axis] % (before / sofar) == 0) {
      possible.push_back({axis, before / sofar});
    }
    sofar *= to[axis];
  }
  if (possible.empty()) {
    return {0, before};
  }
  // The last dimension has features; a model that merges the batch with them is none of ours.
  if (possible.size() > 1 && possible.back().axis + 1 == to.size() &&
      place.axis + 1 < from.size()) {
    possible.pop_back();
  }
  const auto wants = [&](const BatchPlace& at, std::int64_t extent) {
    return at.axis < wanted.size() && wanted[at.axis] == extent;
  };
  const auto first = [&](const auto& fits) -> std::optional<BatchPlace> {
    const auto found = std::find_if(possible.begin(), possible.end(), fits);
    return found == possible.end() ? std::nullopt : std::optional(*found);
  };
  // The model keeps the dimension, or leaves it open.
  if (const auto kept = first([&](const BatchPlace& at) {
        return at.axis == place.axis && at.inside == place.inside && wants(at, 0);
      })) {
    return *kept;
  }
  if (const auto open = first([&](const BatchPlace& at) { return wants(at, -1); })) {
    return *open;
  }
  if (before == 1 && place.axis == 0) {
    return {};
  }
  // The dimensions behind it stay as they are, or those before it.
  if (const auto behind = first(
          [&](const BatchPlace& at) { return are_alike(own_behind, to.subspan(at.axis + 1)); })) {
    return *behind;
  }
  if (const auto ahead = first([&](const BatchPlace& at) {
        return at.inside == place.inside && are_alike(own_ahead, to.first(at.axis));
      })) {
    return *ahead;
  }
  return possible.back();
}

}  // namespace

void BatchTracker::start(const std::string& input) {
  const Shape* const shape = shape_of_(input);
  if (shape != nullptr && !shape->empty() && shape->front() == 1) {
    places_[input] = {};
  }
}

std::int64_t BatchTracker::points_before(const std::string& name) const {
  const auto found = places_.find(name);
  const Shape* const shape = shape_of_(name);
  return found == places_.end() || shape == nullptr ? 1 : points_ahead(*shape, found->second);
}

std::vector<std::int64_t> BatchTracker::listed(const NodeData& node, const std::string& attribute,
                                               std::size_t input) const {
  if (const auto found = node.attributes.find(attribute); found != node.attributes.end()) {
    return found->second.integers;
  }
  const std::vector<std::int64_t>* const found =
      input < node.inputs.size() ? integers_of_(node.inputs[input]) : nullptr;
  return found == nullptr ? std::vector<std::int64_t>() : *found;
}

BatchPlace BatchTracker::moved(const NodeData& node, const Shape& from, const BatchPlace& place,
                               const Shape& to) const {
  const auto number = [&](const std::string& name, std::int64_t fallback) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? fallback : found->second.integer;
  };
  const std::size_t rank = from.size();
  if (node.op == "Transpose") {
    const std::vector<std::int64_t> order = listed(node, "perm", node.inputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (static_cast<std::size_t>(order[i]) == place.axis) {
        return {i, place.inside};
      }
    }
    return {rank - 1 - std::min(place.axis, rank - 1), place.inside};
  }
  if (node.op == "Gemm" && number("transA", 0) != 0) {
    return {1 - std::min<std::size_t>(place.axis, 1), place.inside};
  }
  if (node.op == "Reshape") {
    return reshaped(from, place, to, listed(node, "shape", 1));
  }
  if (node.op == "Flatten") {
    const std::size_t axis = from_front(number("axis", 1), rank);
    const std::int64_t before = points_ahead(from, place);
    return place.axis < axis
               ? BatchPlace{0, before}
               : BatchPlace{1, before / graph::element_count(std::span(from).first(axis))};
  }
  if (node.op == "Unsqueeze") {
    BatchPlace result = place;
    for (const std::size_t axis : front_axes(listed(node, "axes", 1), to.size())) {
      result.axis += axis <= result.axis ? 1U : 0U;
    }
    return result;
  }
  // Dimensions that disappear. Where the batch's own does, its images stay beside each other.
  const bool reduces = node.op.starts_with("Reduce") || node.op == "Squeeze";
  if (reduces && to.size() < rank) {
    const std::set<std::size_t> axes = front_axes(listed(node, "axes", 1), rank);
    std::size_t before = 0;
    for (const std::size_t axis : axes) {
      before += axis < place.axis ? 1U : 0U;
    }
    for (std::size_t i = 1; axes.empty() && node.op == "Squeeze" && i < place.axis; ++i) {
      before += from[i] == 1 ? 1U : 0U;
    }
    return {place.axis - before, place.inside};
  }
  if (node.op == "Gather") {
    const bool is_before = from_front(number("axis", 0), rank) < place.axis;
    return {is_before ? place.axis + to.size() - rank : place.axis, place.inside};
  }
  // Shapes are aligned at their ends.
  return {place.axis + (to.size() > rank ? to.size() - rank : 0), place.inside};
}

void BatchTracker::follow(const NodeData& node) {
  for (const std::string& output : node.outputs) {
    const Shape* const to = output.empty() ? nullptr : shape_of_(output);
    if (to == nullptr) {
      continue;
    }
    // The operand counts that has most points before the batch, as the others are broadcast.
    std::optional<BatchPlace> result;
    for (const std::string& input : node.inputs) {
      const auto found = places_.find(input);
      const Shape* const from = found == places_.end() ? nullptr : shape_of_(input);
      if (from == nullptr) {
        continue;
      }
      const BatchPlace place = moved(node, *from, found->second, *to);
      if (!result || points_ahead(*to, place) > points_ahead(*to, *result)) {
        result = place;
      }
    }
    if (result) {
      places_[output] = *result;
    }
  }
}

}  // namespace foretune::onnx_internal
