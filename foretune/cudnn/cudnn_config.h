// The family of cuDNN's configs and their space; the schema and its struct are in
// space/schemas/cudnn.h.
// Thread safety: free functions.
#pragma once

#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune {

// Returns the rules that hold for every problem, without values: only the library knows which
// engines and values it has for one.
SpaceDefinition cudnn_space();

inline constexpr std::string_view kCudnnName = "cudnn";
inline constexpr std::string_view kCudnnDescription =
    "convolutions by NVIDIA's cuDNN, with an engine and knobs of our choice";
// Returns the family's facts without its device, feature table and metrics. Errors: as
// CompiledSpace::create().
Result<FamilyInfo> cudnn_info();

// Parses one config a line; empty lines and those that begin with # are skipped. Parameters that
// are missing leave the choice to the library, so that "heuristic=b rank=1" is enough. Errors:
// kInvalidArgument with the line.
Result<std::vector<Config>> parse_cudnn_configs(std::string_view text);

}  // namespace foretune
