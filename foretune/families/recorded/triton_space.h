// The legality of the recorded Triton GEMM configs: which configs the measuring program ran for a
// problem. The rules were worked out from the data (shared memory, warps per
// tile, pipeline depth, skipped tiles) and match its 230 problems exactly.
// Thread safety: free functions without state.
#pragma once

#include "foretune/space/parametric_space.h"

namespace foretune {

SpaceDefinition triton_gemm_space();

}  // namespace foretune
