// Reads LoopTune's benchmarks: one nest a file, as loop_tool's text form of its graphs. Facts of
// the format are from the source of loop_tool (src/core/serialization.cpp).
//
//   v:m_98                                             a variable
//   n:7:0,1,:0,1,2,:::0:0;112;0,1;96;0,2;160;0,::,,,:: a node: operation, inputs, variables, ...
//   i:0,1,                                             inputs, o: outputs
//
// Thread safety: free functions.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/loop/gym/benchmarks.h"

namespace foretune::loop::gym {

// Returns true for a text that parse_loop_tool() should be asked for.
bool is_loop_tool(std::string_view text);

// Products, in any layout and with a batch, and convolutions with a stride of 1 and no padding. The
// schedule to start from is that of the file: the order of its loops and their splits. Errors:
// kInvalidArgument for another text and for a nest that is none of these.
Result<Benchmark> parse_loop_tool(std::string_view text, std::string_view name);

}  // namespace foretune::loop::gym
