// Chains of element-wise operations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/run/internal/lowering.h"

namespace foretune::graph {

namespace {

// Returns one period of a constant operand, in the order of the result's elements.
std::vector<float> repeated_constant(const Tensor& constant, const Shape& result,
                                     bool is_of_channels, bool channels_last) {
  Shape shape(result.size(), 1);
  if (is_of_channels) {
    shape[1] = result[1];
  } else {
    std::copy(constant.shape.begin(), constant.shape.end(),
              shape.end() - static_cast<std::ptrdiff_t>(constant.shape.size()));
  }
  Shape steps = dense_steps_of(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    steps[i] = shape[i] == 1 ? 0 : steps[i];
  }
  const Shape stored = in_stored_order(result, channels_last);
  const Shape stored_steps = in_stored_order(steps, channels_last);
  std::size_t first = 0;  // dimension that the constant varies along
  while (first < stored.size() && stored_steps[first] == 0) {
    ++first;
  }
  const std::int64_t period = product_of(stored, first, stored.size());
  std::vector<float> values;
  for (std::int64_t place = 0; place < period; ++place) {
    std::int64_t rest = place;
    std::int64_t from = 0;
    for (std::size_t i = stored.size(); i-- > first;) {
      from += rest % stored[i] * stored_steps[i];
      rest /= stored[i];
    }
    values.push_back((*constant.values)[static_cast<std::size_t>(from)]);
  }
  return values;
}

}  // namespace

void Lowering::lower_chain(const Node& root) {
  const bool channels_last = prefers_chain_last(root);
  Chain chain;
  chain.elements = index(element_count(full_shape(root.output)));
  std::vector<std::size_t> unused;
  emit(root, root, channels_last, chain, unused);
  const ValueId output = result(root.output, channels_last);
  add_step(make_chain_step(std::move(chain), output));
}

bool Lowering::prefers_chain_last(const Node& node) const {
  if (prefers_last(node)) {
    return true;
  }
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
    const Node* const before = chained(node, id);
    return before != nullptr && prefers_chain_last(*before);
  });
}

const Node* Lowering::chained(const Node& node, TensorId id) const {
  const Tensor& tensor = network_.tensor(id);
  if (tensor.node < 0 || !is_elementwise(node)) {
    return nullptr;
  }
  const NodeFusion& fusion = fusions_[index(tensor.node)];
  const bool is_computed = has_form(id, false, ElementType::kF32) || is_last(id);
  return fusion.is_taken && fusion.registers > 0 && !is_computed
             ? &network_.nodes()[index(tensor.node)]
             : nullptr;
}

std::size_t Lowering::emit(const Node& node, const Node& root, bool channels_last, Chain& chain,
                           std::vector<std::size_t>& unused) {
  std::vector<ChainOperand> operands;
  std::vector<std::size_t> used;
  for (const TensorId id : node.inputs) {
    if (const Node* const before = chained(node, id)) {
      used.push_back(emit(*before, root, channels_last, chain, unused));
      operands.push_back({ChainOperand::Kind::kRegister, used.back()});
    } else {
      operands.push_back(outside_operand(id, node, root, channels_last, chain));
    }
  }
  if (used.empty()) {
    if (unused.empty()) {
      unused.push_back(chain.registers++);
    }
    used.push_back(unused.back());
    unused.pop_back();
  }
  const std::size_t to = used.front();
  unused.insert(unused.end(), used.begin() + 1, used.end());
  chain.text += concat(chain.text.empty() ? "" : ", ", node.op->name);
  const std::vector<double>& numbers = node.attributes.numbers;
  if (const UnaryFunction unary = executor_.loops().unary_of(node.op->name)) {
    chain.instructions.push_back({.unary = unary,
                                  .a = operands[0],
                                  .to = to,
                                  .p = numbers.empty() ? 0.0F : static_cast<float>(numbers[0]),
                                  .q = numbers.size() < 2 ? 0.0F : static_cast<float>(numbers[1])});
  } else if (const BinaryFunction binary = executor_.loops().binary_of(node.op->name)) {
    chain.instructions.push_back({.binary = binary, .a = operands[0], .b = operands[1], .to = to});
  } else {
    const ChainOperand scaled{ChainOperand::Kind::kRegister, to};
    chain.instructions.push_back({.binary = executor_.loops().binary_of("mul"),
                                  .a = operands[0],
                                  .b = operands[1],
                                  .to = to});
    chain.instructions.push_back(
        {.binary = executor_.loops().binary_of("add"), .a = scaled, .b = operands[2], .to = to});
  }
  return to;
}

ChainOperand Lowering::outside_operand(TensorId id, const Node& node, const Node& root,
                                       bool channels_last, Chain& chain) {
  const Tensor& tensor = network_.tensor(id);
  const Shape& shape = network_.tensor(root.output).shape;
  if (tensor.is_constant()) {
    chain.constants.push_back(
        repeated_constant(tensor, shape, node.op->name == "affine", channels_last));
    return {ChainOperand::Kind::kConstant, chain.constants.size() - 1};
  }
  ValueId from = kNoValue;
  if (tensor.shape == shape) {
    from = ordered(id, channels_last);
  } else {
    from = add_value(full_shape(root.output), channels_last);
    broadcast(ordered(id, channels_last && tensor.shape.size() == 4), from);
  }
  chain.values.push_back(from);
  return {ChainOperand::Kind::kValue, chain.values.size() - 1};
}

void Lowering::broadcast(ValueId from, ValueId to) {
  const Shape shape = value(to).stored_shape();
  const Shape own = value(from).stored_shape();
  Shape steps = dense_steps_of(own);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == 1 && shape[i] != 1) {
      steps[i] = 0;
    }
  }
  add_step(
      make_copy_step(from, to, {.shape = shape, .from = steps, .to = dense_steps_of(shape)}, {}));
}

}  // namespace foretune::graph
