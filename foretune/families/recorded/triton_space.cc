#include "foretune/families/recorded/triton_space.h"

#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {

SpaceDefinition triton_gemm_space() {
  SpaceDefinition definition;
  definition.schema = triton_gemm_schema();
  definition.problem_type = kGemmProblem;
  definition.domains = {
      {16, 32, 64, 128, 256}, {16, 32, 64, 128, 256}, {32, 64, 128}, {8}, {2, 3, 4, 5}, {2, 4, 8}};
  definition.constraints = {
      {"block_m * block_n <= 32768", "the accumulators of the tile need too many registers"},
      {"128 * num_warps <= block_m * block_n", "the tile is too small for so many warps"},
      {"num_warps > 2 || block_m * block_n <= 4096", "the tile is too large for two warps"},
      {"2 * num_stages * block_k * (block_m + block_n) <= select(hw.shared_bytes_per_block > 0, "
       "hw.shared_bytes_per_block, 232448)",
       "the pipeline stages need more shared memory than a block can have"},
      {"num_stages < 5 || block_m * block_n <= 8192", "five stages were left out for large tiles"},
      {"block_k < 128 || num_stages != 3 || block_m * block_n >= 4096",
       "three stages of the longest block_k were left out for small tiles"},
      {"block_m < 4 * max(m, 16)", "block_m is at least four times the matrix's height"},
      {"block_n < 4 * max(n, 16)", "block_n is at least four times the matrix's width"},
      {"block_m * block_n > 1024 || 2 * m * n * k * batch <= 200000000000",
       "very small tiles were left out for very large problems"},
  };
  return definition;
}

}  // namespace foretune
