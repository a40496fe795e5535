// Pooling, operations along rows, movements of elements, and what has no fast step.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "foretune/graph/run/internal/lowering.h"

namespace foretune::graph {

namespace {

std::vector<float> stored_values(const Tensor& constant, bool channels_last) {
  if (!channels_last) {
    return *constant.values;
  }
  std::vector<float> stored;
  const Shape& s = constant.shape;
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t point = 0; point < s[2] * s[3]; ++point) {
      for (std::int64_t channel = 0; channel < s[1]; ++channel) {
        stored.push_back((*constant.values)[static_cast<std::size_t>(
            (n * s[1] + channel) * s[2] * s[3] + point)]);
      }
    }
  }
  return stored;
}

}  // namespace

void Lowering::lower_pool(const Node& node) {
  const Shape x = full_shape(node.inputs[0]);
  const Shape y = full_shape(node.output);
  const bool is_max = node.op->name == "max_pool";
  const bool is_i8 = is_max && has_form(node.inputs[0], true, ElementType::kI8) &&
                     all_take(node.output, ElementType::kI8);
  const ElementType type = is_i8 ? ElementType::kI8 : ElementType::kF32;
  const ValueId input = ordered(node.inputs[0], true, type);
  const ValueId output = result(node.output, true, type);
  // The largest of integers are of their scale.
  pass_.values[index(output)].quantization = value(input).quantization;
  add_step(make_pool_step(executor_.loops(), pool_window(node.attributes), is_max,
                          {.images = x[0],
                           .channels = x[1],
                           .rows_in = x[2],
                           .columns_in = x[3],
                           .rows = y[2],
                           .columns = y[3],
                           .is_i8 = is_i8},
                          input, output));
}

bool Lowering::lower_rows(const Node& node) {
  const std::string_view op = node.op->name;
  const Shape x = full_shape(node.inputs[0]);
  if (op == "reduce_mean" || op == "reduce_sum") {
    return lower_sum(node, x);
  }
  const bool is_last_axis =
      (op == "softmax" || op == "layer_norm") &&
      (op == "layer_norm" || node.attributes.integers[0] + 1 == static_cast<int>(x.size()));
  if (!is_last_axis) {
    return false;
  }
  const auto length = index(product_of(x, index(node.attributes.integers[0]), x.size()));
  const std::size_t rows = index(element_count(x)) / length;
  const ValueId input = ordered(node.inputs[0], false);
  const ValueId output = result(node.output, false);
  if (op == "softmax") {
    add_step(make_softmax_step(executor_.loops(), rows, length, input, output));
    return true;
  }
  const auto constant = [&](std::size_t operand) {
    return operand < node.inputs.size() ? *network_.tensor(node.inputs[operand]).values
                                        : std::vector<float>();
  };
  add_step(make_normalise_step(executor_.loops(), rows, length,
                               static_cast<float>(node.attributes.numbers[0]), constant(1),
                               constant(2), input, output));
  return true;
}

bool Lowering::lower_sum(const Node& node, const Shape& x) {
  std::vector<std::int64_t> axes(node.attributes.integers.begin() + 1,
                                 node.attributes.integers.end());
  std::sort(axes.begin(), axes.end());
  if (axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size())) {
    return false;
  }
  const std::size_t first = index(axes.front());
  const std::size_t last = index(axes.back()) + 1;
  const std::int64_t rows = product_of(x, first, last);
  const float factor = node.op->name == "reduce_mean" ? 1.0F / static_cast<float>(rows) : 1.0F;
  const bool is_image = is_image_sum(node) && is_last(node.inputs[0]);
  const bool keeps = node.attributes.integers[0] != 0;
  const bool is_i8 = is_image && has_form(node.inputs[0], true, ElementType::kI8);
  const ValueId input =
      ordered(node.inputs[0], is_image, is_i8 ? ElementType::kI8 : ElementType::kF32);
  const ValueId output = result(node.output, is_image && keeps);
  add_step(make_sum_step(executor_.loops(), index(is_image ? x[0] : product_of(x, 0, first)),
                         index(rows), index(is_image ? x[1] : product_of(x, last, x.size())),
                         factor, value(input), input, output));
  return true;
}

bool Lowering::lower_movement(const Node& node) {
  const std::string_view op = node.op->name;
  if (op == "concat") {
    lower_concat(node);
    return true;
  }
  if (op != "slice" && op != "transpose" && op != "pad") {
    return false;
  }
  const std::vector<std::int64_t>& v = node.attributes.integers;
  const bool channels_last = op != "transpose" && prefers_last(node);
  const ValueId input = ordered(node.inputs[0], channels_last);
  const Shape own = value(input).stored_shape();
  const ValueId output = result(node.output, channels_last);
  const Shape made = value(output).stored_shape();
  Copying copying{.shape = made, .from = dense_steps_of(own), .to = dense_steps_of(made)};
  CopyStepOptions options;
  if (op == "transpose") {
    for (std::size_t i = 0; i < v.size(); ++i) {
      copying.from[i] = dense_steps_of(own)[index(v[i])];
    }
  } else if (op == "slice") {
    const std::size_t axis = stored_axis(index(v[0]), channels_last);
    copying.from_first = v[1] * copying.from[axis];
    copying.from[axis] *= v[3];
  } else {
    copying.shape = own;
    for (std::size_t i = 0; i < own.size(); ++i) {
      copying.to_first += v[i] * copying.to[stored_axis(i, channels_last)];
    }
    options = {.fills = true,
               .fill = static_cast<float>(node.attributes.numbers[0]),
               .elements = value(output).elements()};
  }
  add_step(make_copy_step(input, output, std::move(copying), std::move(options)));
  return true;
}

void Lowering::lower_concat(const Node& node) {
  const bool channels_last = prefers_last(node);
  std::vector<ValueId> inputs;
  for (const TensorId id : node.inputs) {
    inputs.push_back(network_.tensor(id).is_constant() ? kNoValue : ordered(id, channels_last));
  }
  const ValueId output = result(node.output, channels_last);
  const std::size_t axis = stored_axis(index(node.attributes.integers[0]), channels_last);
  const Shape to = dense_steps_of(value(output).stored_shape());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = network_.tensor(node.inputs[i]);
    Shape shape = in_stored_order(tensor.shape, channels_last);
    Copying copying{.shape = shape, .from = dense_steps_of(shape), .to = to};
    CopyStepOptions options;
    if (tensor.is_constant()) {
      options.constant = stored_values(tensor, channels_last);
      // The same for every image.
      copying.shape.insert(copying.shape.begin(), pass_.images);
      copying.from.insert(copying.from.begin(), 0);
      copying.to.insert(copying.to.begin(), to[0] * shape[0]);
    } else {
      copying.shape[0] *= pass_.images;
    }
    copying.to_first = first * to[axis];
    first += shape[axis];
    add_step(make_copy_step(inputs[i], output, std::move(copying), std::move(options)));
  }
}

void Lowering::lower_slowly(const Node& node) {
  std::vector<SlowOperand> operands;
  for (const TensorId id : node.inputs) {
    const Tensor& tensor = network_.tensor(id);
    SlowOperand operand;
    if (tensor.is_constant()) {
      operand.shape = tensor.shape;
      operand.constant.assign(tensor.values->begin(), tensor.values->end());
    } else {
      operand.value = ordered(id, false);
      operand.shape = full_shape(id);
    }
    operands.push_back(std::move(operand));
  }
  const ValueId output = result(node.output, false);
  add_step(make_slow_step(*node.op, node.attributes, std::move(operands), full_shape(node.output),
                          output));
}

}  // namespace foretune::graph
