#include "foretune/space/schemas/cublaslt.h"

#include <array>
#include <cstddef>

namespace foretune {
namespace {

constexpr std::array<std::int32_t CublasltConfig::*, 10> kCublasltFields{
    &CublasltConfig::heuristic, &CublasltConfig::algorithm, &CublasltConfig::tile,
    &CublasltConfig::stages,    &CublasltConfig::split_k,   &CublasltConfig::reduction,
    &CublasltConfig::swizzle,   &CublasltConfig::custom,    &CublasltConfig::cluster,
    &CublasltConfig::inner};

static_assert(kCublasltFields.size() == static_cast<std::size_t>(CublasltField::kInner) + 1);

std::uint64_t cublaslt_schema_id() {
  static const std::uint64_t kId = cublaslt_schema().id();
  return kId;
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
  if (config.schema != cublaslt_schema_id() || config.words.size() != kCublasltFields.size()) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema cublaslt");
  }
  CublasltConfig out;
  for (std::size_t i = 0; i < kCublasltFields.size(); ++i) {
    if (config.words[i] < 0) {
      return fail(ErrorCode::kInvalidArgument, cublaslt_schema().parameters[i].name,
                  " is below 0: ", config.words[i]);
    }
    out.*kCublasltFields[i] = config.words[i];
  }
  return out;
}

Config CublasltConfig::to_config() const {
  Config config{.schema = cublaslt_schema_id(), .words = {}};
  for (const auto field : kCublasltFields) {
    config.words.push_back(this->*field);
  }
  return config;
}

}  // namespace foretune
