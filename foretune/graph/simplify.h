// Rewrites a network into one with fewer operations and the same results, as far as f32 rounding
// goes: scales and shifts of channels go into the weights before them, paddings into convolutions,
// sequences of reshapes become one, and what no output needs is left out.
//
//   FORETUNE_TRY(const Network simple, simplify(network));
//
// Thread safety: free functions. Cost: copies the weights that it changes, shares the others.
#pragma once

#include <cstddef>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

Result<Network> simplify(const Network& network);

// Returns how many operations and outputs of the network read each tensor, by TensorId.
[[nodiscard]] std::vector<std::size_t> count_uses(const Network& network);

}  // namespace foretune::graph
