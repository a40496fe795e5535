// Finds what repeats in a network: layers at the same place of equal blocks, and blocks that follow
// each other. A tuner may then try one choice in all of them at once.
//
//   // conv relu, [conv relu conv add relu] 3 times, linear
//   repeated_blocks(network);  // {{.first = 2, .length = 5, .times = 3}}, in operations
//   alike_layers(network);     // {0, 1, 2, 1, 2, 1, 2, 3}, by layer
//
// Two operations are equal when they have the same name, attributes, shapes of operands and result,
// and constant operands at the same places. Values of weights and names of nodes do not count.
//
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/graph/network.h"

namespace foretune::graph {

// The operations [first, first + length * times), positions in Network::nodes().
struct RepeatedBlock {
  std::size_t first = 0;
  std::size_t length = 0;  // of one repeat, in operations
  std::size_t times = 0;   // at least 2
  bool operator==(const RepeatedBlock&) const = default;
};

// Longer blocks are not looked for.
inline constexpr std::size_t kMaxBlockLength = 4096;  // operations

// Returns the blocks that repeat back to back, those that cover most operations first, and of equal
// covers the shorter block. They do not overlap. The operations at the same place of a repeat and
// the next one are equal and read the same: results as far before them, or one tensor from before
// both. The first repeat may read anything before it where the second reads the first. The
// operations of a repeat are connected, and every repeat but the first reads a result of the one
// before it, so branches side by side are no repeats. A block that may begin at several places
// begins where the fewest tensors pass into the next repeat, and then with a layer; where repeats
// share tensors, other begins might cover more. Cost: O(n * L) at most for n operations and blocks
// of up to L = min(n / 2, kMaxBlockLength) operations, O(n log n) where little repeats; about 10 ms
// for 2,000 equal operations.
[[nodiscard]] std::vector<RepeatedBlock> repeated_blocks(const Network& network);

// Returns the class of each layer (an operation with weights), in the order of the network. Classes
// are numbered from 0 by first appearance. Two layers are alike, and share a class, when they
// have the same place in two repeats of a block of repeated_blocks(), or when the operations
// around them are equal: all that lie up to three steps away, with the operands by which they are
// connected. Layers that are alike to the same one are alike, too. Cost: that of repeated_blocks(),
// and O(n log n) for the surroundings.
[[nodiscard]] std::vector<std::int32_t> alike_layers(const Network& network);

}  // namespace foretune::graph
