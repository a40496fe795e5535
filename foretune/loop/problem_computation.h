// Loop nests as problems of the core and back:
//
//   nest_mm m=192 n=96 k=64 batch=1 ta=no tb=no bias=no relu=yes    "mm m=192 n=96 k=64 relu"
//   nest_conv b=1 c=64 h=56 w=56 o=64 r=3 s=3 pad=1 ...             "conv b=1 c=64 ... pad=1"
//   nest_map r=64 c=512 chain=bias_relu                             "map r=64 c=512
//   chain=bias_relu" nest_reduce r=64 c=512 op=add of_columns=no                     "reduce r=64
//   c=512 op=add"
//
// Every problem of the four types is a computation, and the two functions undo each other.
//
// Thread safety: free functions.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/problem/problem.h"

namespace foretune::loop {

// Errors: kInvalidArgument for a problem of another type.
Result<Computation> computation_of(const Problem& problem);

// Takes what parse_computation() takes. Errors: those of parse_computation() for its words; those
// of Problem::create() for sizes; kUnsupported for elementwise steps that are no chain with a name.
Result<Problem> problem_of(std::string_view computation_text);

}  // namespace foretune::loop
