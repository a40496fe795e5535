#include "foretune/graph/simplify.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretune/graph/ops.h"

namespace foretune::graph {

namespace {

// Copies a network operation by operation into a builder, changing them on the way.
class Simplifier {
 public:
  explicit Simplifier(const Network& network)
      : network_(network),
        uses_(count_uses(network)),
        needed_(network.tensors().size(), false),
        reader_of_(network.tensors().size(), -1),
        copies_(network.tensors().size(), kNoTensor),
        builder_(network.name()) {
    for (std::size_t i = 0; i < network.nodes().size(); ++i) {
      for (const TensorId id : network.nodes()[i].inputs) {
        reader_of_[position(id)] = static_cast<std::int32_t>(i);
      }
    }
  }

  Result<Network> run() {
    mark_needed();
    // An input stays one, whether it is read or not.
    for (const TensorId id : network_.inputs()) {
      copies_[position(id)] = builder_.input(network_.tensor(id).name, network_.tensor(id).shape);
    }
    for (const Node& node : network_.nodes()) {
      if (needed_[position(node.output)] && copies_[position(node.output)] == kNoTensor) {
        copy(node);
      }
    }
    std::vector<TensorId> outputs;
    for (const TensorId id : network_.outputs()) {
      outputs.push_back(copies_[position(id)]);
    }
    return builder_.finish(std::move(outputs));
  }

 private:
  static std::size_t position(TensorId id) { return static_cast<std::size_t>(id); }

  void mark_needed() {
    for (const TensorId id : network_.outputs()) {
      needed_[position(id)] = true;
    }
    for (std::size_t i = network_.nodes().size(); i-- > 0;) {
      const Node& node = network_.nodes()[i];
      if (needed_[position(node.output)]) {
        for (const TensorId id : node.inputs) {
          needed_[position(id)] = true;
        }
      }
    }
  }

  // Returns the operation that computes a tensor which nothing but the asker reads.
  const Node* only_for_asker(TensorId id) const {
    const Tensor& tensor = network_.tensor(id);
    return tensor.node < 0 || uses_[position(id)] != 1
               ? nullptr
               : &network_.nodes()[static_cast<std::size_t>(tensor.node)];
  }

  // Returns the only reader of a tensor when it is an operation.
  const Node* only_reader(TensorId id) const {
    if (uses_[position(id)] != 1) {
      return nullptr;
    }
    const std::int32_t reader = reader_of_[position(id)];
    return reader < 0 ? nullptr : &network_.nodes()[static_cast<std::size_t>(reader)];
  }

  TensorId copy_of(TensorId id) {
    TensorId& copy = copies_[position(id)];
    const Tensor& tensor = network_.tensor(id);
    if (copy == kNoTensor && tensor.is_constant()) {
      copy = builder_.constant(tensor.name, tensor.shape, tensor.values);
    }
    return copy;
  }

  void copy(const Node& node) {
    if (has_weights(*node.op)) {
      copy_weighted(node);
      return;
    }
    if (node.op->name == "reshape") {
      copy_reshape(node);
      return;
    }
    std::vector<TensorId> inputs;
    for (const TensorId id : node.inputs) {
      inputs.push_back(copy_of(id));
    }
    copies_[position(node.output)] =
        builder_.add(node.op->name, node.name, std::move(inputs), node.attributes);
  }

  // A reshape of a reshape reads the first one's input; one that changes nothing is left out.
  void copy_reshape(const Node& node) {
    TensorId from = node.inputs[0];
    while (network_.tensor(from).node >= 0) {
      const Node& before = network_.nodes()[static_cast<std::size_t>(network_.tensor(from).node)];
      if (before.op->name != "reshape") {
        break;
      }
      from = before.inputs[0];
    }
    const bool is_output = std::find(network_.outputs().begin(), network_.outputs().end(),
                                     node.output) != network_.outputs().end();
    const TensorId source = copy_of(from);
    copies_[position(node.output)] =
        network_.tensor(from).shape == network_.tensor(node.output).shape && !is_output
            ? source
            : builder_.add("reshape", node.name, {source}, node.attributes);
  }

  void copy_weighted(const Node& node) {
    const bool is_conv = node.op->name == "conv";
    Attributes attributes = node.attributes;
    TensorId input = node.inputs[0];
    if (is_conv) {
      input = take_padding(input, attributes);
    }
    const Tensor& weights = network_.tensor(node.inputs[1]);
    const auto outputs = static_cast<std::size_t>(weights.shape[0]);
    std::shared_ptr<const std::vector<float>> values = weights.values;
    std::vector<float> bias;
    if (node.inputs.size() == 3) {
      bias = *network_.tensor(node.inputs[2]).values;
    }
    // The channels of a linear operation are the dimension 1 only with two dimensions.
    TensorId result = node.output;
    while (is_conv || network_.tensor(result).shape.size() == 2) {
      const Node* const next = only_reader(result);
      if (next == nullptr || next->op->name != "affine" || next->inputs[0] != result) {
        break;
      }
      const std::vector<float>& scale = *network_.tensor(next->inputs[1]).values;
      const std::vector<float>& shift = *network_.tensor(next->inputs[2]).values;
      std::vector<float> scaled = *values;
      const std::size_t own = scaled.size() / outputs;
      bias.resize(outputs, 0.0F);
      for (std::size_t i = 0; i < outputs; ++i) {
        for (float& value : std::span(scaled).subspan(i * own, own)) {
          value *= scale[i];
        }
        bias[i] = bias[i] * scale[i] + shift[i];
      }
      values = std::make_shared<const std::vector<float>>(std::move(scaled));
      needed_[position(result)] = false;
      result = next->output;
    }
    std::vector<TensorId> inputs{copy_of(input),
                                 builder_.constant(weights.name, weights.shape, values)};
    if (!bias.empty()) {
      inputs.push_back(builder_.constant(node.name + ".bias", {weights.shape[0]}, bias));
    }
    copies_[position(result)] =
        builder_.add(node.op->name, node.name, std::move(inputs), std::move(attributes));
  }

  // Adds the zeros of a pad before a convolution to its own; returns the convolution's input.
  TensorId take_padding(TensorId input, Attributes& attributes) const {
    const Node* const pad = only_for_asker(input);
    if (pad == nullptr || pad->op->name != "pad" || pad->attributes.numbers[0] != 0) {
      return input;
    }
    const std::vector<std::int64_t>& v = pad->attributes.integers;
    if (v[1] != 0 || v[5] != 0) {
      return input;
    }
    attributes.integers[2] += v[2];
    attributes.integers[3] += v[3];
    attributes.integers[4] += v[6];
    attributes.integers[5] += v[7];
    return pad->inputs[0];
  }

  const Network& network_;
  std::vector<std::size_t> uses_;
  std::vector<bool> needed_;
  std::vector<std::int32_t> reader_of_;  // the last operation that reads a tensor, or -1
  std::vector<TensorId> copies_;         // by the old TensorId
  NetworkBuilder builder_;
};

}  // namespace

std::vector<std::size_t> count_uses(const Network& network) {
  std::vector<std::size_t> uses(network.tensors().size(), 0);
  for (const Node& node : network.nodes()) {
    for (const TensorId id : node.inputs) {
      ++uses[static_cast<std::size_t>(id)];
    }
  }
  for (const TensorId id : network.outputs()) {
    ++uses[static_cast<std::size_t>(id)];
  }
  return uses;
}

Result<Network> simplify(const Network& network) {
  // A second pass drops what the first leaves unread: the pads that convolutions took over.
  FORETUNE_TRY(const Network once, Simplifier(network).run());
  return Simplifier(once).run();
}

}  // namespace foretune::graph
