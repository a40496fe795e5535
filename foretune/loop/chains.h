// The steps of the elementwise chains that go by a name (problem/nest_map/nest_map.h).
//
//   elementwise(64, 512, chain_steps(NestChain::kBiasRelu))   // "map r=64 c=512 chain=bias_relu"
//
// Thread safety: free functions without state.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/problem/nest_map/nest_map.h"

namespace foretune::loop {

// For elementwise(): further tensors are inputs 1, 2 and 3, in the order in which they are read.
std::vector<Step> chain_steps(NestChain chain);
// The chain that has these steps, or nothing.
std::optional<NestChain> find_chain(std::span<const Step> steps);
// The names of all chains, joined by commas.
std::string chain_labels();

}  // namespace foretune::loop
