// Computations by their names: "mm m=192 n=96 k=64 batch=2 ta tb bias relu",
// "conv c=64 h=56 w=56 o=64 r=3 s=3 stride=2 dilation=1 pad=1 groups=1 nhwc bias relu",
// "reduce r=64 c=512 op=add of_columns", "map r=64 c=512 chain=bias_relu", "elementwise r=64 c=512
// multiply=in1 add=0.5". Sizes that are left out are 1. What parse_computation() gives has the name
// that was asked for, in the order that the makers of computations print, and every name of theirs
// parses back to the same computation.
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

// What reduction() and elementwise() take.
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

// What a text asks for, which need not be legal. Errors: kInvalidArgument for an unknown kind, word
// or chain, a size that is none, one given twice.
Result<ComputationSizes> parse_sizes(std::string_view text);
// Errors: those of parse_sizes() and of the makers.
Result<Computation> parse_computation(std::string_view text);

}  // namespace foretune::loop
