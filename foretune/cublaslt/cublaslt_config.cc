#include "foretune/cublaslt/cublaslt_config.h"

#include <cstddef>
#include <numeric>
#include <vector>

#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// Returns 0 .. last.
std::vector<std::int32_t> up_to(std::int32_t last) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(last) + 1);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

SpaceDefinition cublaslt_space() {
  SpaceDefinition definition;
  definition.schema = cublaslt_schema();
  definition.problem_type = kGemmProblem;
  definition.domains = {up_to(kCublasltHeuristicRanks),
                        up_to(127),
                        up_to(700),
                        up_to(63),
                        up_to(64),
                        {0, 2, 4},
                        {0, 1},
                        up_to(255),
                        up_to(63),
                        up_to(15)};
  definition.constraints = {
      {"heuristic == 0 || algorithm + tile + stages + split_k + reduction + swizzle + custom + "
       "cluster + inner == 0",
       "a rank of the heuristic leaves everything else to the library"},
      {"heuristic > 0 || algorithm > 0 && split_k > 0", "no algorithm is named"},
      {"(split_k > 1) == (reduction > 0)", "a reduction scheme is what a split of k needs"},
      {"split_k <= 1 || k >= 16 * split_k", "the parts of k would be shorter than 16"},
  };
  return definition;
}

}  // namespace foretune
