#include "foretune/graph/run/internal/fusion.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/graph/ops.h"
#include "foretune/graph/run/internal/steps.h"
#include "foretune/graph/run/vector_ops.h"
#include "foretune/graph/simplify.h"

namespace foretune::graph {

namespace {

class Fusions {
 public:
  explicit Fusions(const Network& network)
      : network_(network),
        uses_(count_uses(network)),
        reader_of_(network.tensors().size(), -1),
        fusions_(network.nodes().size()) {
    for (std::size_t i = 0; i < network.nodes().size(); ++i) {
      for (const TensorId id : network.nodes()[i].inputs) {
        reader_of_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(i);
      }
    }
  }

  std::vector<NodeFusion> run() {
    for (std::size_t i = 0; i < network_.nodes().size(); ++i) {
      const Node& node = network_.nodes()[i];
      if (has_weights(*node.op)) {
        fuse_product(i);
      } else if (is_elementwise(node) && !fusions_[i].is_taken) {
        fuse_chain(i);
      }
    }
    return std::move(fusions_);
  }

 private:
  // Returns the position of the only reader of a tensor, or -1.
  std::int32_t only_reader(TensorId id) const {
    return uses_[static_cast<std::size_t>(id)] == 1 ? reader_of_[static_cast<std::size_t>(id)] : -1;
  }
  const Node& node(std::int32_t position) const {
    return network_.nodes()[static_cast<std::size_t>(position)];
  }

  void fuse_product(std::size_t position) {
    NodeFusion& fusion = fusions_[position];
    fusion.output = network_.nodes()[position].output;
    const std::int32_t next = only_reader(fusion.output);
    if (next < 0) {
      return;
    }
    if (node(next).op->name == "relu") {
      fusion.relu = true;
      take(fusion, next);
      return;
    }
    if (node(next).op->name != "add") {
      return;
    }
    const TensorId other = node(next).inputs[node(next).inputs[0] == fusion.output ? 1 : 0];
    const Tensor& added = network_.tensor(other);
    const std::int32_t relu = only_reader(node(next).output);
    // The other operand has to be there when the product runs.
    if (added.is_constant() || other == fusion.output || relu < 0 ||
        node(relu).op->name != "relu" || added.node > static_cast<std::int32_t>(position) ||
        added.shape != network_.tensor(fusion.output).shape) {
      return;
    }
    fusion.addend = other;
    fusion.relu = true;
    fusions_[static_cast<std::size_t>(next)].is_taken = true;
    take(fusion, relu);
  }

  void take(NodeFusion& fusion, std::int32_t position) {
    fusion.output = node(position).output;
    fusions_[static_cast<std::size_t>(position)].is_taken = true;
  }

  // Takes over the element-wise operations that compute operands which nothing else reads.
  void fuse_chain(std::size_t position) {
    const Node& now = network_.nodes()[position];
    std::size_t busy = 0;  // registers that hold operands
    std::size_t registers = 1;
    for (const TensorId id : now.inputs) {
      const Tensor& operand = network_.tensor(id);
      if (operand.node < 0 || uses_[static_cast<std::size_t>(id)] != 1 ||
          operand.shape != network_.tensor(now.output).shape) {
        continue;
      }
      NodeFusion& before = fusions_[static_cast<std::size_t>(operand.node)];
      if (before.is_taken || before.registers == 0 ||
          busy + before.registers > kMaxChainRegisters) {
        continue;
      }
      before.is_taken = true;
      registers = std::max(registers, busy + before.registers);
      ++busy;
    }
    fusions_[position].registers = registers;
  }

  const Network& network_;
  std::vector<std::size_t> uses_;
  std::vector<std::int32_t> reader_of_;
  std::vector<NodeFusion> fusions_;
};

}  // namespace

bool is_elementwise(const Node& node) {
  const auto is_among = [&](const auto& names) {
    return std::find(names.begin(), names.end(), node.op->name) != names.end();
  };
  return is_among(kUnaryLoops) || is_among(kBinaryLoops) || node.op->name == "affine";
}

std::vector<NodeFusion> find_fusions(const Network& network) { return Fusions(network).run(); }

}  // namespace foretune::graph
