// The space of the sparse-cpu family: which configs are legal, and which mean the same.
// Thread safety: free functions.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune::sparse_cpu {

SpaceDefinition sparse_cpu_space_definition();

// Returns the definition compiled; all callers share it. Errors: none in a correct build.
Result<std::shared_ptr<const CompiledSpace>> sparse_cpu_space();

}  // namespace foretune::sparse_cpu
