// The space of the family cpu-conv: the schema is in space/schemas/cpu_conv.h.
// Thread safety: free functions.
#pragma once

#include <cstdint>
#include <memory>

#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

enum class WinogradUse : std::uint8_t {
  kNever,
  kAllowed,
  kOnly2,  // nothing else is legal
  kOnly4,
};

// The algorithms that are legal only where the family says so.
struct CpuConvSpaceOptions {
  WinogradUse winograd = WinogradUse::kNever;
  bool tiles = false;
};
SpaceDefinition cpu_conv_space_definition(CpuConvSpaceOptions options);

// Returns the definition, compiled once.
Result<std::shared_ptr<const CompiledSpace>> cpu_conv_space(CpuConvSpaceOptions options);

}  // namespace foretune
