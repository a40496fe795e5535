// A schedule as C to read, keep and compile elsewhere: nested loops with the names that the
// schedule gives them, remainders as shorter last rounds, packs as buffers.
//
//   FORETUNE_TRY(const std::string text, emit_c(computation, nest, "product"));
//   // void product(const float *const *inputs, float *output) { ... }
//
// The text is C11 that needs nothing but the standard library. Each function stands alone, and
// functions of different names can share a file. Marks become pragmas of OpenMP and GCC, which do
// no harm where they are unknown. The output must not overlap an input.
// Thread safety: a free function, and so is what it writes. Cost: some microseconds a loop.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// Errors: kInvalidArgument for a name that is none in C, and for what check() refuses; kUnsupported
// for packs of more than 64 MiB and for register blocks of more than 64 KiB.
Result<std::string> emit_c(const Computation& computation, const Nest& nest,
                           std::string_view function_name);

}  // namespace foretune::loop
