#include "foretune/cublaslt/cublaslt_config.h"

#include <cstddef>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// Returns 0 .. last.
std::vector<std::int32_t> up_to(std::int32_t last) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(last) + 1);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Returns the rule that the algorithm is none of these.
std::string none_of(std::initializer_list<int> algorithms) {
  std::string rule;
  for (const int algorithm : algorithms) {
    rule += concat(rule.empty() ? "" : " && ", "algorithm != ", algorithm);
  }
  return rule;
}

// Returns the rule that the rows of all three matrices, as they are stored, have a multiple of this
// many elements.
std::string rows_of(int elements) {
  return concat("n % ", elements, " == 0 && (layout == layout.crr || k % ", elements,
                " == 0) && (layout == layout.rcr || layout == layout.rrr || m % ", elements,
                " == 0)");
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
      // The rules of the algorithms of cuBLASLt 13.1, as they were seen on an H200. They keep
      // configs out that the library would refuse, and need not be complete.
      {"algorithm == 66 || heuristic > 0 || dtype != dtype.f8e4m3", "only algorithm 66 has f8e4m3"},
      {"algorithm != 66 || dtype == dtype.bf16 || dtype == dtype.f16 || dtype == dtype.f8e4m3",
       "algorithm 66 multiplies bf16, f16 and f8e4m3"},
      {"algorithm != 66 || stages == select(dtype == dtype.f8e4m3, 36, 35)",
       "algorithm 66 has one number of stages for a type"},
      {"split_k <= 1 || batch == 1", "only the depth of a single product is split"},
      {"reduction != 2 || m * n * split_k <= 16777216",
       "the parts of the result would need more than 64 MiB of workspace"},
      {"algorithm != 13 || m == 1 || n == 1", "algorithm 13 multiplies by a vector"},
      {concat(none_of({10, 20, 43, 55, 63}), " || dtype == dtype.f32 || dtype == dtype.tf32"),
       "the algorithm multiplies f32 and tf32"},
      {concat(none_of({35, 56}), " || dtype == dtype.f16"), "the algorithm multiplies f16"},
      {concat(none_of({16, 24, 41, 42}), " || dtype == dtype.bf16 || dtype == dtype.f16"),
       "the algorithm multiplies bf16 and f16"},
      {concat(none_of({21, 23, 43, 63}), " || dtype != dtype.f32"),
       "the algorithm does not multiply f32"},
      {concat(none_of({21, 66}), " || dtype == dtype.tf32 || ", rows_of(8)),
       "the algorithm needs rows of a multiple of 16 bytes"},
      {concat(none_of({23, 41}), " || dtype == dtype.tf32 || ", rows_of(2)),
       "the algorithm needs rows of a multiple of 4 bytes"},
  };
  return definition;
}

Result<FamilyInfo> cublaslt_info() {
  FamilyInfo info;
  info.name = kCublasltName;
  info.description = kCublasltDescription;
  info.problem_type = kGemmProblem;
  info.config_schema = cublaslt_schema();
  FORETUNE_TRY(info.space, CompiledSpace::create(cublaslt_space()));
  info.feature_table = "gemm-cublaslt";
  return info;
}

}  // namespace foretune
