// The space of the cpu-gemm family as data: domains, constraints with their reasons, and the rules
// that map configs of equal meaning to one. Every config has a meaning for every problem: a
// register block higher than the matrix is the block of the matrix's height, B is packed only where
// a packed panel is used more than once, and so on. The family runs the canonical form of a config,
// so the same config can be compared over problems of all sizes.
// Thread safety: free functions.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

SpaceDefinition cpu_gemm_space_definition();

// Returns the definition, compiled once.
Result<std::shared_ptr<const CompiledSpace>> cpu_gemm_space();

}  // namespace foretune
