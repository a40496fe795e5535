#include "foretune/graph/part.h"

#include <algorithm>
#include <utility>

#include "foretune/graph/ops.h"

namespace foretune::graph {

namespace {

std::size_t position(TensorId id) { return static_cast<std::size_t>(id); }

}  // namespace

std::vector<bool> read_from(const Network& network, std::size_t node) {
  std::vector<bool> is_read(network.tensors().size(), false);
  for (const TensorId id : network.outputs()) {
    is_read[position(id)] = true;
  }
  for (const Node& each : network.nodes().subspan(node)) {
    for (const TensorId id : each.inputs) {
      is_read[position(id)] = true;
    }
  }
  return is_read;
}

Result<NetworkPart> part_of(const Network& network, std::size_t first, std::size_t last) {
  if (first >= last || last > network.nodes().size()) {
    return fail(ErrorCode::kInvalidArgument, "a network of ", network.nodes().size(),
                " operations has no part from ", first, " to ", last);
  }
  const std::vector<bool> is_read = read_from(network, last);
  NetworkPart part;
  NetworkBuilder builder(network.name());
  std::vector<TensorId> copies(network.tensors().size(), kNoTensor);
  std::vector<TensorId> outputs;
  for (const Node& node : network.nodes().subspan(first, last - first)) {
    std::vector<TensorId> inputs;
    for (const TensorId id : node.inputs) {
      TensorId& copy = copies[position(id)];
      const Tensor& tensor = network.tensor(id);
      if (copy == kNoTensor && tensor.is_constant()) {
        copy = builder.constant(tensor.name, tensor.shape, tensor.values);
      } else if (copy == kNoTensor) {
        copy = builder.input(tensor.name, tensor.shape);
        part.reads.push_back(id);
      }
      inputs.push_back(copy);
    }
    TensorId& result = copies[position(node.output)];
    result = builder.add(node.op->name, node.name, std::move(inputs), node.attributes);
    if (is_read[position(node.output)]) {
      outputs.push_back(result);
      part.writes.push_back(node.output);
    }
  }
  FORETUNE_TRY(part.network, builder.finish(std::move(outputs)));
  return part;
}

}  // namespace foretune::graph
