#include "foretune/space/schemas/triton.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace foretune {
namespace {

struct TritonTileParameter {
  const char* name;
  std::int32_t TritonConfig::* member;
};
constexpr std::array<TritonTileParameter, kTritonTileWords> kTritonTile{
    {{"block_m", &TritonConfig::block_m},
     {"block_n", &TritonConfig::block_n},
     {"block_k", &TritonConfig::block_k},
     {"group_m", &TritonConfig::group_m},
     {"num_stages", &TritonConfig::num_stages},
     {"num_warps", &TritonConfig::num_warps}}};

// Returns the schema of the tile between other parameters.
ConfigSchema triton_schema(const char* name, std::vector<Parameter> before,
                           const std::vector<Parameter>& after) {
  ConfigSchema schema{.name = name, .version = 1, .parameters = std::move(before)};
  for (const TritonTileParameter& parameter : kTritonTile) {
    schema.parameters.push_back({parameter.name, {}});
  }
  schema.parameters.insert(schema.parameters.end(), after.begin(), after.end());
  return schema;
}

// Ids are compared for every config that is read; hashing the schema each time would cost more
// than all the rest.
std::uint64_t triton_matmul_schema_id() {
  static const std::uint64_t kId = triton_matmul_schema().id();
  return kId;
}

}  // namespace

const ConfigSchema& triton_gemm_schema() {
  static const ConfigSchema kSchema = triton_schema("triton-gemm", {}, {});
  return kSchema;
}

const ConfigSchema& triton_matmul_schema() {
  static const ConfigSchema kSchema = triton_schema("triton-matmul", {{"template", {}}}, {});
  return kSchema;
}

const ConfigSchema& diode_triton_schema() {
  static const ConfigSchema kSchema =
      triton_schema("diode-triton", {},
                    {{"even_k", {"no", "yes"}},
                     {"allow_tf32", {"no", "yes"}},
                     {"use_fast_accum", {"no", "yes"}},
                     {"acc_type", {"tl.float32", "tl.float16", "tl.bfloat16", "tl.int32"}}});
  return kSchema;
}

Result<TritonConfig> TritonConfig::from(const Config& config) {
  if (config.schema != triton_matmul_schema_id() || config.words.size() != kTritonTileWords + 1) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema triton-matmul");
  }
  const std::int32_t kernel = config.words[0];
  if (kernel < 0 || kernel > 2) {
    return fail(ErrorCode::kInvalidArgument, "there is no template ", kernel);
  }
  TritonConfig out{.kernel = static_cast<TritonTemplate>(kernel)};
  for (std::size_t i = 0; i < kTritonTile.size(); ++i) {
    const std::int32_t word = config.words[i + 1];
    if (word < 0 || (word == 0) != (kernel == 0)) {
      return fail(ErrorCode::kInvalidArgument, kTritonTile[i].name, " cannot be ", word);
    }
    out.*kTritonTile[i].member = word;
  }
  return out;
}

Config TritonConfig::to_config() const {
  Config config{.schema = triton_matmul_schema_id(), .words = {}};
  config.words.push_back(static_cast<std::int32_t>(kernel));
  for (const TritonTileParameter& parameter : kTritonTile) {
    config.words.push_back(this->*parameter.member);
  }
  return config;
}

}  // namespace foretune
