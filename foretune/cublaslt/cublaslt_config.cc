#include "foretune/cublaslt/cublaslt_config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

constexpr std::array<std::int32_t CublasltConfig::*, 10> kFields{
    &CublasltConfig::heuristic, &CublasltConfig::algorithm, &CublasltConfig::tile,
    &CublasltConfig::stages,    &CublasltConfig::split_k,   &CublasltConfig::reduction,
    &CublasltConfig::swizzle,   &CublasltConfig::custom,    &CublasltConfig::cluster,
    &CublasltConfig::inner};

std::uint64_t schema_id() {
  static const std::uint64_t kId = cublaslt_schema().id();
  return kId;
}

// 0 .. last.
std::vector<std::int32_t> up_to(std::int32_t last) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(last) + 1);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

const ConfigSchema& cublaslt_schema() {
  static const ConfigSchema kSchema{.name = "cublaslt",
                                    .version = 1,
                                    .kind = SchemaKind::kParametric,
                                    .parameters = {{"heuristic", {}},
                                                   {"algorithm", {}},
                                                   {"tile", {}},
                                                   {"stages", {}},
                                                   {"split_k", {}},
                                                   {"reduction", {}},
                                                   {"swizzle", {}},
                                                   {"custom", {}},
                                                   {"cluster", {}},
                                                   {"inner", {}}}};
  return kSchema;
}

Result<CublasltConfig> CublasltConfig::from(const Config& config) {
  if (config.schema != schema_id() || config.words.size() != kFields.size()) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema cublaslt");
  }
  CublasltConfig out;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (config.words[i] < 0) {
      return fail(ErrorCode::kInvalidArgument, cublaslt_schema().parameters[i].name,
                  " is below 0: ", config.words[i]);
    }
    out.*kFields[i] = config.words[i];
  }
  return out;
}

Config CublasltConfig::to_config() const {
  Config config{.schema = schema_id(), .words = {}};
  for (const auto field : kFields) {
    config.words.push_back(this->*field);
  }
  return config;
}

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
