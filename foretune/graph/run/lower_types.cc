// Decides which results stay in a narrow type.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/internal/lowering.h"

namespace foretune::graph {

bool Lowering::is_image_sum(const Node& node) const {
  const std::vector<std::int64_t>& v = node.attributes.integers;
  return (node.op->name == "reduce_mean" || node.op->name == "reduce_sum") && v.size() == 3 &&
         std::min(v[1], v[2]) == 2 && std::max(v[1], v[2]) == 3 &&
         network_.tensor(node.inputs[0]).shape.size() == 4;
}

LayerVariant Lowering::variant_of(const Node& node) const {
  if (options_.variants == nullptr) {
    return {};
  }
  const auto found = options_.variants->find(node.name);
  return found == options_.variants->end() ? LayerVariant{} : found->second;
}

// A result is of the layer's type where all readers take it. Readers are visited first.
void Lowering::choose_types() {
  const std::size_t count = network_.nodes().size();
  readers_.resize(network_.tensors().size());
  is_output_.assign(network_.tensors().size(), false);
  taken_by_.assign(count, -1);
  made_.assign(count, ElementType::kF32);
  for (const TensorId id : network_.outputs()) {
    is_output_[index(id)] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (const TensorId id : network_.nodes()[i].inputs) {
      readers_[index(id)].push_back(i);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (fusions_[i].addend != kNoTensor) {
      for (const std::size_t reader : readers_[index(fusions_[i].addend)]) {
        const Node& add = network_.nodes()[reader];
        const bool is_own = std::find(add.inputs.begin(), add.inputs.end(),
                                      network_.nodes()[i].output) != add.inputs.end();
        if (fusions_[reader].is_taken && is_own) {
          taken_by_[reader] = static_cast<std::int32_t>(i);
        }
      }
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    const Node& node = network_.nodes()[i];
    const LayerVariant variant = variant_of(node);
    const ElementType type = element_type(variant.type);
    // A layer that ends later ends in f32.
    if (has_weights(*node.op) && !ends_later(variant, fusions_[i]) &&
        all_take(fusions_[i].output, type)) {
      made_[i] = type;
    }
  }
}

bool Lowering::all_take(TensorId id, ElementType type) const {
  const auto& readers = readers_[index(id)];
  return !is_output_[index(id)] && !readers.empty() &&
         std::all_of(readers.begin(), readers.end(),
                     [&](std::size_t reader) { return takes(reader, id, type); });
}

bool Lowering::takes(std::size_t reader, TensorId id, ElementType type) const {
  const Node& node = network_.nodes()[reader];
  const std::string_view op = node.op->name;
  if (type == ElementType::kF32) {
    return true;
  }
  if (has_weights(*node.op)) {
    const DataType wanted = variant_of(node).type;
    return node.inputs[0] == id && ((type == ElementType::kI8 && wanted == DataType::kI8) ||
                                    (type == ElementType::kBf16 && wanted == DataType::kBf16));
  }
  if (op == "max_pool") {
    return type == ElementType::kI8 && all_take(node.output, type);
  }
  if (op == "reshape") {
    return all_take(node.output, type);
  }
  if (is_image_sum(node)) {
    return type == ElementType::kI8;
  }
  // A layer that adds the tensor takes it in the type of its result.
  return taken_by_[reader] >= 0 && made_[index(taken_by_[reader])] == type;
}

Status Lowering::check_variants() const {
  if (options_.variants == nullptr) {
    return {};
  }
  for (std::size_t i = 0; i < network_.nodes().size(); ++i) {
    const Node& node = network_.nodes()[i];
    const LayerVariant variant = variant_of(node);
    if (const Support support = can_run(network_, node, variant); !support) {
      return fail(ErrorCode::kInvalidArgument, node.name, ": ", support.reason());
    }
    if (variant.type != DataType::kI8) {
      continue;
    }
    for (const TensorId id : {node.inputs[0], fusions_[i].output}) {
      const std::string& name = network_.tensor(unshaped(id)).name;
      if (options_.calibration == nullptr || !options_.calibration->contains(name)) {
        return fail(ErrorCode::kInvalidArgument, node.name,
                    ": a layer of integers needs the range of the tensor ", foretune::quoted(name));
      }
    }
  }
  for (const auto& [name, variant] : *options_.variants) {
    const bool is_there = std::any_of(network_.nodes().begin(), network_.nodes().end(),
                                      [&](const Node& node) { return node.name == name; });
    if (!is_there) {
      return fail(ErrorCode::kInvalidArgument, "the network has no operation ",
                  foretune::quoted(name));
    }
  }
  return {};
}

TensorId Lowering::unshaped(TensorId id) const {
  while (network_.tensor(id).node >= 0) {
    const Node& node = network_.nodes()[index(network_.tensor(id).node)];
    if (node.op->name != "reshape") {
      break;
    }
    id = node.inputs[0];
  }
  return id;
}

Quantization Lowering::quantization_of(TensorId id) const {
  const auto found = options_.calibration->find(network_.tensor(unshaped(id)).name);
  if (found == options_.calibration->end()) {
    return {};  // of a result that has the quantization of its operand
  }
  constexpr float kSteps = 255;
  constexpr float kLeast = 1e-12F;
  const float low = std::min(found->second.low, 0.0F);
  const float high = std::max(found->second.high, 0.0F);
  const float scale = std::max((high - low) / kSteps, kLeast);
  return {.scale = scale,
          .zero = static_cast<std::int32_t>(
              std::clamp(std::nearbyint(-128.0F - low / scale), -128.0F, 127.0F))};
}

}  // namespace foretune::graph
