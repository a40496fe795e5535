// Writes a schedule as C, to read, keep and compile elsewhere: nested loops with the names that the
// schedule gives them, remainders as shorter last rounds, packs as buffers.
//
//   FORETUNE_TRY(const std::string text, emit_c(computation, nest, "product"));
//   // void product(const float *const *inputs, float *output) { ... }
//
// The text is C11 that needs only the standard library. Each function stands alone, and functions
// with different names can share a file. Marks become pragmas of OpenMP and GCC, which compilers
// that do not know them ignore. The output must not overlap an input.
// Thread safety: a free function, and it writes one, too. Cost: some microseconds a loop.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// Errors: kInvalidArgument for a name that C cannot have, and for a nest or computation that
// check() refuses; kUnsupported for packs of more than 64 MiB and for register blocks of more than
// 64 KiB.
Result<std::string> emit_c(const Computation& computation, const Nest& nest,
                           std::string_view function_name);

}  // namespace foretune::loop
