#include "foretune/families/triton/triton_config.h"

#include <cstddef>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

std::string_view epilogue_label(GemmOperation operation) {
  switch (operation) {
    case GemmOperation::kAddmm:
      return "bias";
    case GemmOperation::kAddmmRelu:
      return "bias_relu";
    case GemmOperation::kAddmmGelu:
      return "bias_gelu";
    case GemmOperation::kMm:
    case GemmOperation::kBmm:
      break;
  }
  return "none";
}

}  // namespace

SpaceDefinition triton_matmul_space() {
  SpaceDefinition definition;
  definition.schema = triton_matmul_schema();
  definition.problem_type = kGemmProblem;
  definition.domains = {{0, 1, 2},
                        {0, 16, 32, 64, 128, 256},
                        {0, 16, 32, 64, 128, 256},
                        {0, 32, 64, 128},
                        {0, 8},
                        {0, 2, 3, 4, 5},
                        {0, 2, 4, 8}};
  definition.constraints = {
      {"template > 0 || block_m + block_n + block_k + group_m + num_stages + num_warps == 0",
       "the library's choice has no tile"},
      {"template == 0 || block_m * block_n * block_k * group_m * num_stages * num_warps > 0",
       "a template needs a tile"},
      {"block_m * block_n <= 32768", "the accumulators of the tile need too many registers"},
      {"block_m * block_n <= 4096 * num_warps",
       "more than 128 accumulators of each thread do not fit its registers"},
      {"128 * num_warps <= block_m * block_n", "the tile is too small for so many warps"},
      {"num_warps != 2 || block_m * block_n <= 4096", "the tile is too large for two warps"},
      {"num_stages * block_k * (block_m + block_n) * select(dtype == dtype.f32 || dtype == "
       "dtype.tf32, 4, 2) <= select(hw.shared_bytes_per_block > 0, hw.shared_bytes_per_block, "
       "232448)",
       "the pipeline stages need more shared memory than a block can have"},
      {"num_stages < 5 || block_m * block_n <= 8192",
       "five stages are worth their shared memory for small tiles only"},
      {"block_m < 4 * max(m, 16)", "block_m is at least four times the matrix's height"},
      {"block_n < 4 * max(n, 16)", "block_n is at least four times the matrix's width"},
      {"template == 0 || block_m * block_n > 1024 || m * n * k * batch <= 100000000000",
       "very small tiles are hopeless for very large products"},
      {"template < 2 || min(block_m, block_n) >= 64 && block_k >= 64 && num_warps >= 4 && "
       "num_stages <= 4",
       "the persistent template is for large tiles"},
      {"template < 2 || num_stages * block_k * (block_m + block_n) + block_m * block_n <= "
       "select(hw.shared_bytes_per_block > 0, hw.shared_bytes_per_block, 232448) / "
       "select(dtype == dtype.f32 || dtype == dtype.tf32, 4, 2)",
       "the stages and the result's tile need more shared memory than a block can have"},
      {"template < 2 || select(layout == layout.crr || layout == layout.ccr, m, k) % 8 == 0 && "
       "select(layout == layout.rcr || layout == layout.ccr, k, n) % 8 == 0 && n % 8 == 0",
       "tensor descriptors need rows of a multiple of 8 elements"},
  };
  return definition;
}

const std::shared_ptr<const CompiledSpace>& compiled_triton_matmul_space() {
  static const std::shared_ptr<const CompiledSpace> kSpace =
      *CompiledSpace::create(triton_matmul_space());
  return kSpace;
}

LeadingDimensions leading_dimensions(const GemmProblem& problem) {
  return {.a = a_by_columns(problem.layout()) ? problem.m() : problem.k(),
          .b = b_by_columns(problem.layout()) ? problem.k() : problem.n(),
          .d = problem.n()};
}

std::string triton_kernel_key(const GemmProblem& problem, const TritonConfig& config) {
  const LeadingDimensions leading = leading_dimensions(problem);
  const bool is_aligned = leading.a % kTritonAlignment == 0 && leading.b % kTritonAlignment == 0 &&
                          leading.d % kTritonAlignment == 0;
  // Tensor descriptors fill what lies outside with zeros.
  const bool is_even =
      config.kernel == TritonTemplate::kPersistent || problem.k() % config.block_k == 0;
  std::string key = concat(
      "template=", static_cast<int>(config.kernel), " dtype=", to_string(problem.dtype()),
      " layout=", to_string(problem.layout()), " epilogue=", epilogue_label(problem.operation()),
      " even_k=", is_even ? 1 : 0, " aligned=", is_aligned ? 1 : 0);
  // The parameters of the tile follow the template.
  const ConfigSchema& schema = triton_matmul_schema();
  const Config values = config.to_config();
  for (std::size_t i = 1; i < values.words.size(); ++i) {
    key += concat(" ", schema.parameters[i].name, "=", values.words[i]);
  }
  return key;
}

Result<std::vector<std::string>> triton_kernel_keys(const GemmProblem& problem,
                                                    const Hardware& hardware) {
  FORETUNE_TRY(const auto space, ParametricSpace::bind(compiled_triton_matmul_space(),
                                                       problem.to_problem(), hardware));
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < space->count(); ++i) {
    FORETUNE_TRY(const TritonConfig config, TritonConfig::from(space->unrank(i)));
    if (config.kernel != TritonTemplate::kLibrary) {
      keys.push_back(triton_kernel_key(problem, config));
    }
  }
  return keys;
}

}  // namespace foretune
