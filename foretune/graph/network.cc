#include "foretune/graph/network.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"

namespace foretune::graph {

namespace {

std::vector<OperandShape> operand_shapes(std::span<const Tensor> tensors, const Node& node) {
  std::vector<OperandShape> shapes;
  for (const TensorId id : node.inputs) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(id)];
    shapes.push_back({tensor.shape, tensor.is_constant()});
  }
  return shapes;
}

Status check_shape(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 1 || extent > kMaxElements || count > kMaxElements / extent) {
      return fail(ErrorCode::kInvalidArgument, "a tensor of ", to_text(shape),
                  " is empty or too large");
    }
    count *= extent;
  }
  if (shape.size() > kMaxRank) {
    return fail(ErrorCode::kInvalidArgument, "a tensor has at most ", kMaxRank, " dimensions");
  }
  return {};
}

}  // namespace

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

std::string to_text(std::span<const std::int64_t> shape) {
  if (shape.empty()) {
    return "scalar";
  }
  std::string text;
  for (const std::int64_t extent : shape) {
    text += concat(text.empty() ? "" : "x", extent);
  }
  return text;
}

double Network::multiply_adds() const {
  double total = 0;
  for (const Node& node : nodes_) {
    if (node.op->multiply_adds != nullptr) {
      total += node.op->multiply_adds(operand_shapes(tensors_, node), tensor(node.output).shape);
    }
  }
  return total;
}

std::int64_t Network::weight_bytes() const {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors_) {
    if (tensor.is_constant()) {
      total += element_count(tensor.shape) * static_cast<std::int64_t>(sizeof(float));
    }
  }
  return total;
}

TensorId NetworkBuilder::add_tensor(Tensor tensor) {
  if (!status_) {
    return kNoTensor;
  }
  if (network_.tensors_.size() >= kMaxTensors) {
    return refuse("a network has at most ", kMaxTensors, " tensors");
  }
  if (tensor.name.size() > kMaxName) {
    return refuse("a name has at most ", kMaxName, " bytes");
  }
  if (Status checked = check_shape(tensor.shape); !checked) {
    return refuse(foretune::quoted(tensor.name), ": ", checked.error().message);
  }
  network_.tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(network_.tensors_.size() - 1);
}

TensorId NetworkBuilder::input(std::string name, Shape shape) {
  if (shape.empty()) {
    return refuse("the input ", foretune::quoted(name), " has no dimension for the batch");
  }
  const TensorId id = add_tensor({.name = std::move(name), .shape = std::move(shape)});
  if (id != kNoTensor) {
    network_.inputs_.push_back(id);
  }
  return id;
}

TensorId NetworkBuilder::constant(std::string name, Shape shape, std::vector<float> values) {
  return constant(std::move(name), std::move(shape),
                  std::make_shared<const std::vector<float>>(std::move(values)));
}

TensorId NetworkBuilder::constant(std::string name, Shape shape,
                                  std::shared_ptr<const std::vector<float>> values) {
  const std::size_t count = values->size();
  const TensorId id =
      add_tensor({.name = std::move(name), .shape = std::move(shape), .values = std::move(values)});
  if (id != kNoTensor &&
      static_cast<std::size_t>(element_count(network_.tensor(id).shape)) != count) {
    return refuse(foretune::quoted(network_.tensor(id).name), " of ",
                  to_text(network_.tensor(id).shape), " has ", count, " values");
  }
  return id;
}

TensorId NetworkBuilder::add(std::string_view op, std::string name, std::vector<TensorId> inputs,
                             Attributes attributes) {
  if (!status_) {
    return kNoTensor;
  }
  const OpInfo* const info = find_op(op);
  if (info == nullptr) {
    return refuse("no operation is called ", foretune::quoted(op));
  }
  if (name.empty() || names_.contains(name)) {
    const std::string stem = name.empty() ? std::string(op) : name;
    std::size_t number = network_.nodes_.size();
    do {
      name = concat(stem, "_", number++);
    } while (names_.contains(name));
  }
  if (inputs.size() < info->min_inputs || inputs.size() > info->max_inputs) {
    return refuse(name, ": ", op, " does not take ", inputs.size(), " operands");
  }
  const auto fits = [](std::size_t wanted, std::size_t found) {
    return wanted == found || wanted == kAnyNumber;
  };
  if (!fits(info->integers, attributes.integers.size()) ||
      !fits(info->numbers, attributes.numbers.size())) {
    return refuse(name, ": ", op, " takes other attributes");
  }
  for (const TensorId id : inputs) {
    if (find(id) == nullptr) {
      return refuse(name, ": an operand is missing");
    }
  }
  if (std::all_of(inputs.begin(), inputs.end(),
                  [&](TensorId id) { return find(id)->is_constant(); })) {
    return refuse(name, ": all operands are constant");
  }
  if (has_weights(*info) && (find(inputs[0])->is_constant() || !find(inputs[1])->is_constant() ||
                             (inputs.size() == 3 && !find(inputs[2])->is_constant()))) {
    return refuse(name, ": weights and bias are constant, and the input is not");
  }
  Node node{.op = info,
            .name = std::move(name),
            .inputs = std::move(inputs),
            .attributes = std::move(attributes)};
  Result<Shape> shape = info->shape(operand_shapes(network_.tensors_, node), node.attributes);
  if (!shape) {
    return refuse(node.name, ": ", shape.error().message);
  }
  node.output = add_tensor({.name = node.name,
                            .shape = *std::move(shape),
                            .node = static_cast<std::int32_t>(network_.nodes_.size())});
  if (node.output == kNoTensor) {
    return kNoTensor;
  }
  names_.insert(node.name);
  network_.nodes_.push_back(std::move(node));
  return network_.nodes_.back().output;
}

const Tensor* NetworkBuilder::find(TensorId id) const {
  return id < 0 || static_cast<std::size_t>(id) >= network_.tensors_.size() ? nullptr
                                                                            : &network_.tensor(id);
}

const Shape& NetworkBuilder::shape(TensorId id) const {
  static const Shape none;
  const Tensor* const tensor = find(id);
  return tensor == nullptr ? none : tensor->shape;
}

Result<Network> NetworkBuilder::finish(std::vector<TensorId> outputs) {
  FORETUNE_TRY_STATUS(status_);
  if (network_.name_.size() > kMaxName) {
    return fail(ErrorCode::kInvalidArgument, "a name has at most ", kMaxName, " bytes");
  }
  if (outputs.empty() || network_.inputs_.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a network has at least one input and one output");
  }
  for (const TensorId id : outputs) {
    const Tensor* const tensor = find(id);
    if (tensor == nullptr || tensor->node < 0) {
      return fail(ErrorCode::kInvalidArgument, "an output is not computed by the network");
    }
  }
  network_.outputs_ = std::move(outputs);
  return std::move(network_);
}

}  // namespace foretune::graph
