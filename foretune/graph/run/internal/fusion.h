// Decides which operations of a network run together: convolutions and products with the addition
// and ReLU behind them, and element-wise operations with each other.
//
// Thread safety: plain data after find_fusions().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/graph/network.h"

namespace foretune::graph {

// By position among the nodes.
struct NodeFusion {
  // True when another node computes this one.
  bool is_taken = false;
  // A convolution or product adds this tensor, ends in that one, and applies a ReLU or not.
  TensorId addend = kNoTensor;
  TensorId output = kNoTensor;
  bool relu = false;
  // An element-wise operation needs so many registers, with those that it takes over.
  std::size_t registers = 0;
};

std::vector<NodeFusion> find_fusions(const Network& network);

// Returns true for an operation that a chain can compute.
bool is_elementwise(const Node& node);

}  // namespace foretune::graph
