// The family of cuBLASLt's configs and their space; the schema and its struct are in
// space/schemas/cublaslt.h.
// Thread safety: free functions.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/cublaslt.h"

namespace foretune {

// Returns the values that the API knows, with the constraints that hold for every problem. Only the
// library (cublasLtMatmulAlgoCheck) can say which of them a device's kernels support.
SpaceDefinition cublaslt_space();

inline constexpr std::string_view kCublasltName = "cublaslt";
inline constexpr std::string_view kCublasltDescription =
    "matrix products by NVIDIA's cuBLASLt, with an algorithm of our choice";
// Returns the family's facts without its device and metrics. Errors: as CompiledSpace::create().
Result<FamilyInfo> cublaslt_info();

}  // namespace foretune
