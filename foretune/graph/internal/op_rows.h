// The functions that ops/ defines for ops.inc, and what they share. Thread safety: free functions.
#pragma once

#include <cstdint>
#include <span>

#include "foretune/graph/ops.h"

namespace foretune::graph {

#define FORETUNE_GRAPH_OP(name) const OpInfo& name##_op();
#include "foretune/graph/ops.inc"
#undef FORETUNE_GRAPH_OP

// The rule of operations whose result has the shape of their operand.
inline Result<Shape> same_shape(std::span<const OperandShape> inputs,
                                const Attributes& /*attributes*/) {
  return Shape(inputs[0].shape.begin(), inputs[0].shape.end());
}

// Returns the product of the extents [first, last).
inline std::int64_t extent_of(std::span<const std::int64_t> shape, std::size_t first,
                              std::size_t last) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < last; ++i) {
    product *= shape[i];
  }
  return product;
}

// Refuses the dimension 0, over which the batch runs, and dimensions that are not there.
Status check_axis(std::int64_t axis, std::size_t rank);

}  // namespace foretune::graph
