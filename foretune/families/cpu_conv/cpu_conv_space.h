// The space of the family cpu-conv: the schema is in space/schemas/cpu_conv.h.
// Thread safety: free functions.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// `winograd` makes configs with Winograd's algorithm legal.
SpaceDefinition cpu_conv_space_definition(bool winograd);

// Returns the definition, compiled once.
Result<std::shared_ptr<const CompiledSpace>> cpu_conv_space(bool winograd);

}  // namespace foretune
