#include "foretune/graph/reference.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"

namespace foretune::graph {

Shape batch_shape(const Tensor& tensor, std::int64_t batch) {
  Shape shape = tensor.shape;
  if (!tensor.is_constant()) {
    shape[0] *= batch;
  }
  return shape;
}

Result<std::vector<std::vector<double>>> run_reference_tensors(
    const Network& network, std::span<const std::vector<float>> inputs, std::int64_t batch) {
  if (batch < 1 || inputs.size() != network.inputs().size()) {
    return fail(ErrorCode::kInvalidArgument, "a network of ", network.inputs().size(),
                " inputs got ", inputs.size(), ", for ", batch, " images");
  }
  std::vector<std::vector<double>> values(network.tensors().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorId id = network.inputs()[i];
    const std::int64_t wanted = element_count(batch_shape(network.tensor(id), batch));
    if (static_cast<std::size_t>(wanted) != inputs[i].size()) {
      return fail(ErrorCode::kInvalidArgument, "the input ",
                  foretune::quoted(network.tensor(id).name), " has ", wanted, " values, not ",
                  inputs[i].size());
    }
    values[static_cast<std::size_t>(id)].assign(inputs[i].begin(), inputs[i].end());
  }
  for (const Node& node : network.nodes()) {
    std::vector<Shape> shapes;
    std::vector<std::vector<double>> constants(node.inputs.size());
    std::vector<OperandValues> operands;
    shapes.reserve(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& tensor = network.tensor(node.inputs[i]);
      shapes.push_back(batch_shape(tensor, batch));
      if (tensor.is_constant()) {
        constants[i].assign(tensor.values->begin(), tensor.values->end());
      }
      operands.push_back({shapes.back(), tensor.is_constant()
                                             ? constants[i]
                                             : values[static_cast<std::size_t>(node.inputs[i])]});
    }
    const Shape shape = batch_shape(network.tensor(node.output), batch);
    std::vector<double>& result = values[static_cast<std::size_t>(node.output)];
    result.resize(static_cast<std::size_t>(element_count(shape)));
    node.op->compute(operands, node.attributes, shape, result);
  }
  return values;
}

Result<std::vector<std::vector<double>>> run_reference(const Network& network,
                                                       std::span<const std::vector<float>> inputs,
                                                       std::int64_t batch) {
  FORETUNE_TRY(std::vector<std::vector<double>> values,
               run_reference_tensors(network, inputs, batch));
  std::vector<std::vector<double>> outputs;
  for (const TensorId id : network.outputs()) {
    outputs.push_back(values[static_cast<std::size_t>(id)]);
  }
  return outputs;
}

}  // namespace foretune::graph
