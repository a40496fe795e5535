// The space of the sparse-cpu family: which configs are legal, and which mean the same.
// Thread safety: free functions.
#pragma once

#include <memory>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune::sparse_cpu {

inline constexpr std::string_view kFullSpace = "full";

// The space has parts with names:
//
//   full   everything
//   csr    rows as they are: nothing is packed
//   waco   what WACO's templates for TACO express: rows as they are or blocks, sums in registers,
//          rows or chunks of rows for the threads
SpaceDefinition sparse_cpu_space_definition(std::string_view subspace = kFullSpace);

// Returns the definition compiled; all callers share it. Errors: kInvalidArgument for an unknown
// name, with those known.
Result<std::shared_ptr<const CompiledSpace>> sparse_cpu_space(
    std::string_view subspace = kFullSpace);

}  // namespace foretune::sparse_cpu
