#include "foretune/graph/run/internal/lowering.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"

namespace foretune::graph {

std::vector<std::int64_t> dense_steps_of(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> steps(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    steps[i - 1] = steps[i] * shape[i];
  }
  return steps;
}

std::int64_t product_of(std::span<const std::int64_t> shape, std::size_t first, std::size_t last) {
  return element_count(shape.subspan(first, last - first));
}

std::size_t stored_axis(std::size_t axis, bool channels_last) {
  constexpr std::array<std::size_t, 4> kChannelsLast{0, 3, 1, 2};
  return channels_last ? kChannelsLast[axis] : axis;
}

Shape in_stored_order(const Shape& logical, bool channels_last) {
  Shape stored(logical.size());
  for (std::size_t i = 0; i < logical.size(); ++i) {
    stored[stored_axis(i, channels_last)] = logical[i];
  }
  return stored;
}

bool has_one_order(const Shape& shape) {
  return shape.size() == 4 && (shape[1] == 1 || shape[2] * shape[3] == 1);
}

Lowering::Lowering(const Network& network, Executor& executor, const LoweringOptions& options)
    : network_(network),
      executor_(executor),
      options_(options),
      fusions_(find_fusions(network)),
      forms_(network.tensors().size()),
      reshaped_(network.tensors().size(), kNoTensor) {
  pass_.images = options.images;
}

Result<Pass> Lowering::run() {
  FORETUNE_TRY_STATUS(check_variants());
  choose_types();
  for (std::size_t i = 0; i < network_.inputs().size(); ++i) {
    const ValueId id = result(network_.inputs()[i], false);
    pass_.values[index(id)].input = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = 0; i < network_.nodes().size(); ++i) {
    if (!fusions_[i].is_taken) {
      const std::size_t before = pass_.steps.size();
      FORETUNE_TRY_STATUS(lower_node(i));
      for (std::size_t step = before; step < pass_.steps.size(); ++step) {
        pass_.steps[step]->name = network_.nodes()[i].name;
      }
    }
  }
  for (std::size_t i = 0; i < network_.outputs().size(); ++i) {
    lower_output(i);
  }
  for (std::size_t id = 0; id < forms_.size(); ++id) {
    for (const auto& order : forms_[id].of) {
      if (order[index(ElementType::kF32)] != kNoValue) {
        pass_.names.emplace_back(order[index(ElementType::kF32)], network_.tensors()[id].name);
      }
    }
  }
  plan_memory(pass_);
  return std::move(pass_);
}

Shape Lowering::full_shape(TensorId id) const {
  Shape shape = network_.tensor(id).shape;
  shape[0] *= pass_.images;
  return shape;
}

ValueId Lowering::add_value(Shape shape, bool channels_last, ElementType type, ValueId alias) {
  pass_.values.push_back(
      {.shape = std::move(shape), .channels_last = channels_last, .type = type, .alias = alias});
  return static_cast<ValueId>(pass_.values.size() - 1);
}

ValueId Lowering::result(TensorId id, bool channels_last, ElementType type) {
  const ValueId made = add_value(full_shape(id), channels_last, type);
  if (type == ElementType::kI8) {
    pass_.values[index(made)].quantization = quantization_of(id);
  }
  return form(id, channels_last, type) = made;
}

bool Lowering::is_last(TensorId id) const {
  return has_form(id, true, ElementType::kF32) || has_form(id, true, ElementType::kBf16) ||
         has_form(id, true, ElementType::kI8);
}

ValueId Lowering::ordered(TensorId id, bool channels_last, ElementType type) {
  if (has_form(id, channels_last, type)) {
    return form(id, channels_last, type);
  }
  const ValueId made =
      type == ElementType::kF32 ? reordered(id, channels_last) : retyped(id, channels_last, type);
  return form(id, channels_last, type) = made;
}

// Makes the f32 form of a tensor in an order that it does not have yet.
ValueId Lowering::reordered(TensorId id, bool channels_last) {
  for (const ElementType narrow : {ElementType::kI8, ElementType::kBf16}) {
    if (has_form(id, channels_last, narrow) && !has_form(id, !channels_last, ElementType::kF32)) {
      const ValueId from = form(id, channels_last, narrow);
      const ValueId to = add_value(full_shape(id), channels_last);
      add_step(make_convert_step(executor_.loops(), value(from), from, value(to), to));
      return to;
    }
  }
  if (reshaped_[index(id)] != kNoTensor && !channels_last) {
    const ValueId from = ordered(reshaped_[index(id)], false);
    return add_value(full_shape(id), false, ElementType::kF32, from);
  }
  const ValueId from = ordered(id, !channels_last);
  if (has_one_order(value(from).shape)) {
    return add_value(full_shape(id), channels_last, ElementType::kF32, from);
  }
  const ValueId to = add_value(full_shape(id), channels_last);
  copy_between(from, to);
  return to;
}

// Makes a narrower form of a tensor.
ValueId Lowering::retyped(TensorId id, bool channels_last, ElementType type) {
  const Shape& shape = network_.tensor(id).shape;
  if (has_one_order(shape) && has_form(id, !channels_last, type)) {
    const ValueId from = form(id, !channels_last, type);
    const ValueId made = add_value(full_shape(id), channels_last, type, from);
    pass_.values[index(made)].quantization = value(from).quantization;
    return made;
  }
  const TensorId source = reshaped_[index(id)];
  if (source != kNoTensor && !channels_last) {
    const bool is_same =
        has_form(source, false, type) ||
        (has_one_order(network_.tensor(source).shape) && has_form(source, true, type));
    if (is_same) {
      const ValueId from = ordered(source, false, type);
      const ValueId made = add_value(full_shape(id), false, type, from);
      pass_.values[index(made)].quantization = value(from).quantization;
      return made;
    }
  }
  const ValueId from = ordered(id, channels_last);
  const ValueId to = add_value(full_shape(id), channels_last, type);
  if (type == ElementType::kI8) {
    pass_.values[index(to)].quantization = quantization_of(id);
  }
  add_step(make_convert_step(executor_.loops(), value(from), from, value(to), to));
  return to;
}

// Copies all elements of an f32 tensor from one order to the other.
void Lowering::copy_between(ValueId from, ValueId to) {
  const bool to_last = value(to).channels_last;
  const Shape shape = value(from).shape;
  const auto logical = [&](ValueId id) {
    const std::vector<std::int64_t> steps = dense_steps_of(value(id).stored_shape());
    Shape by_axis(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      by_axis[i] = steps[stored_axis(i, value(id).channels_last)];
    }
    return by_axis;
  };
  add_step(make_copy_step(from, to,
                          {.shape = in_stored_order(shape, to_last),
                           .from = in_stored_order(logical(from), to_last),
                           .to = in_stored_order(logical(to), to_last)},
                          {}));
}

bool Lowering::prefers_last(const Node& node) const {
  return network_.tensor(node.output).shape.size() == 4 &&
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
           return is_last(id) && network_.tensor(id).shape.size() == 4;
         });
}

Status Lowering::lower_node(std::size_t position) {
  const Node& node = network_.nodes()[position];
  const std::string_view op = node.op->name;
  if (has_weights(*node.op)) {
    const LayerVariant variant = variant_of(node);
    const Layer layer{.node = node,
                      .fusion = fusions_[position],
                      .variant = variant,
                      .type = element_type(variant.type),
                      .made = made_[position],
                      .ends_later = ends_later(variant, fusions_[position])};
    return op == "conv" ? lower_conv(layer) : lower_linear(layer);
  }
  if (op == "matmul") {
    return lower_matmul(node);
  }
  if (is_elementwise(node)) {
    lower_chain(node);
  } else if (op == "max_pool" || op == "average_pool") {
    lower_pool(node);
  } else if (op == "reshape") {
    reshaped_[index(node.output)] = node.inputs[0];
  } else if (!lower_rows(node) && !lower_movement(node)) {
    lower_slowly(node);
  }
  return {};
}

void Lowering::lower_output(std::size_t position) {
  const TensorId id = network_.outputs()[position];
  const std::size_t before = pass_.steps.size();
  const ValueId found = ordered(id, false);
  const ValueId root = pass_.root_of(found);
  if (value(root).input < 0 && value(root).output < 0 && value(root).type == ElementType::kF32) {
    pass_.values[index(root)].output = static_cast<std::int32_t>(position);
  } else {
    const ValueId copy = add_value(full_shape(id), false);
    pass_.values[index(copy)].output = static_cast<std::int32_t>(position);
    copy_between(found, copy);
  }
  for (std::size_t step = before; step < pass_.steps.size(); ++step) {
    pass_.steps[step]->name = "output";
  }
}

Result<Pass> lower(const Network& network, Executor& executor, const LoweringOptions& options) {
  return Lowering(network, executor, options).run();
}

}  // namespace foretune::graph
