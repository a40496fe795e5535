// Computations by their names: "mm m=192 n=96 k=64 batch=2 ta tb bias relu",
// "conv c=64 h=56 w=56 o=64 r=3 s=3 stride=2 dilation=1 pad=1 groups=1 nhwc bias relu",
// "reduce r=64 c=512 op=add of_columns". Sizes that are left out are 1. What these functions give
// has the name that was asked for, in the order that the makers of computations print.
//
// Thread safety: free functions.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"

namespace foretune::loop {

// Errors: kInvalidArgument for an unknown kind or word, a size that is none, one given twice; those
// of the makers.
Result<Computation> parse_computation(std::string_view text);

}  // namespace foretune::loop
