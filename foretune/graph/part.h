// Cuts operations that follow each other out of a network, as a network of its own: to run the end
// of a network many times on what its beginning computed once.
//
//   FORETUNE_TRY(const NetworkPart rest, part_of(network, 12, network.nodes().size()));
//
// Thread safety: free functions. Cost: parts share the weights.
#pragma once

#include <cstddef>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

// Operations and tensors keep their names.
struct NetworkPart {
  Network network;
  // Tensors of the whole network: those the part's inputs stand for, and those of its outputs,
  // which later operations read or the whole network returns.
  std::vector<TensorId> reads;
  std::vector<TensorId> writes;
};

// Returns the operations [first, last). Errors: kInvalidArgument for a range without operations,
// and where nothing that the range computes is read behind it.
Result<NetworkPart> part_of(const Network& network, std::size_t first, std::size_t last);

// Says of every tensor, by TensorId, whether operations from position `node` on read it or the
// network returns it.
[[nodiscard]] std::vector<bool> read_from(const Network& network, std::size_t node);

}  // namespace foretune::graph
