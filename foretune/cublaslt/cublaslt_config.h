// The space of cuBLASLt's configs; the schema and its struct are in space/schemas/cublaslt.h.
// Thread safety: free functions.
#pragma once

#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/cublaslt.h"

namespace foretune {

// Returns the values that the API knows, with the constraints that hold for every problem. Only the
// library (cublasLtMatmulAlgoCheck) can say which of them a device's kernels support.
SpaceDefinition cublaslt_space();

}  // namespace foretune
