// Computations by their names: "mm m=192 n=96 k=64 batch=2 ta tb bias relu",
// "conv c=64 h=56 w=56 o=64 r=3 s=3 stride=2 dilation=1 pad=1 groups=1 nhwc bias relu",
// "reduce r=64 c=512 op=add of_columns", "map r=64 c=512 chain=bias_relu", "elementwise r=64 c=512
// multiply=in1 add=0.5". Omitted sizes are 1. parse_computation() returns a computation whose name
// has the words of the text, in the order in which the makers of computations print them. Every
// such name parses back to the same computation.
//
// Thread safety: free functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"

namespace foretune::loop {

// The arguments of reduction() and elementwise().
struct ReductionSizes {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Op reduce = Op::kAdd;  // kAdd, kMax or kMin
  bool of_columns = false;
};
struct ElementwiseSizes {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::vector<Step> steps = {};
};
using ComputationSizes = std::variant<MatmulSizes, ConvSizes, ReductionSizes, ElementwiseSizes>;

// Parses the sizes in a text, which need not be legal. Errors: kInvalidArgument for an unknown
// kind, word or chain, an invalid size, and a size given twice.
Result<ComputationSizes> parse_sizes(std::string_view text);
// Errors: those of parse_sizes() and of the makers.
Result<Computation> parse_computation(std::string_view text);

}  // namespace foretune::loop
