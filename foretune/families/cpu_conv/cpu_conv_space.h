// The space of the family cpu-conv: the schema is in space/schemas/cpu_conv.h.
// Thread safety: free functions.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// The algorithms that are legal only where the family says so.
struct CpuConvSpaceOptions {
  bool winograd = false;
  bool tiles = false;
};
SpaceDefinition cpu_conv_space_definition(CpuConvSpaceOptions options);

// Returns the definition, compiled once.
Result<std::shared_ptr<const CompiledSpace>> cpu_conv_space(CpuConvSpaceOptions options);

}  // namespace foretune
