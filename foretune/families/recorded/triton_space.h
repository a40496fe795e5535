// The schema and the legality of the recorded Triton GEMM configs: which configs the measuring
// program ran for a problem. The rules were worked out from the data (shared memory, warps per
// tile, pipeline depth, skipped tiles) and match its 230 problems exactly.
// Thread safety: free functions without state.
#pragma once

#include "foretune/space/config.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// block_m, block_n, block_k, group_m, num_stages, num_warps.
ConfigSchema triton_gemm_schema();
SpaceDefinition triton_gemm_space();

}  // namespace foretune
