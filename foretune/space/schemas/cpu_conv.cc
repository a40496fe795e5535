#include "foretune/space/schemas/cpu_conv.h"

#include <array>

namespace foretune {
namespace {

// Ids are compared for every config that is read; hashing the schema each time would cost more
// than all the rest.
std::uint64_t cpu_conv_schema_id() {
  static const std::uint64_t kId = cpu_conv_schema().id();
  return kId;
}

// The least and the greatest value of each word.
struct ConvWordRange {
  std::int32_t low = 0;
  std::int32_t high = 1;
};
constexpr std::int32_t kMaxConvBlock = 1 << 24;
constexpr std::array<ConvWordRange, kCpuConvWords> kConvWordRanges{{{0, 2},
                                                                    {0, 6},
                                                                    {1, 64},
                                                                    {1, 1024},
                                                                    {1, kMaxConvBlock},
                                                                    {1, kMaxConvBlock},
                                                                    {0, 2},
                                                                    {0, 2},
                                                                    {0, 1},
                                                                    {1, 1024},
                                                                    {0, 1}}};

}  // namespace

const ConfigSchema& cpu_conv_schema() {
  static const ConfigSchema kSchema{
      .name = "cpu-conv",
      .version = 1,
      .kind = SchemaKind::kParametric,
      .parameters = {
          {"isa", {"generic", "avx2", "avx512"}},
          {"algorithm", {"taps", "groups", "planar", "turned", "winograd2", "winograd4", "tiles"}},
          {"mr", {}},
          {"nr", {}},
          {"rows", {}},
          {"kc", {}},
          {"order", {"filters", "points", "rows"}},
          {"taps", {"each", "row", "inner"}},
          {"copy", {"needed", "always"}},
          {"threads", {}},
          {"split", {"points", "filters"}}}};
  return kSchema;
}

Result<CpuConvConfig> CpuConvConfig::from(const Config& config) {
  if (config.schema != cpu_conv_schema_id() || config.words.size() != kCpuConvWords) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema cpu-conv");
  }
  for (std::size_t i = 0; i < kCpuConvWords; ++i) {
    const auto [low, high] = kConvWordRanges[i];
    if (config.words[i] < low || config.words[i] > high) {
      return fail(ErrorCode::kInvalidArgument, cpu_conv_schema().parameters[i].name,
                  " must be from ", low, " to ", high, ", not ", config.words[i]);
    }
  }
  const auto word = [&](CpuConvField field) {
    return config.words[static_cast<std::size_t>(field)];
  };
  return CpuConvConfig{.isa = static_cast<CpuIsa>(word(CpuConvField::kIsa)),
                       .algorithm = static_cast<ConvAlgorithm>(word(CpuConvField::kAlgorithm)),
                       .mr = word(CpuConvField::kMr),
                       .nr = word(CpuConvField::kNr),
                       .rows = word(CpuConvField::kRows),
                       .kc = word(CpuConvField::kKc),
                       .order = static_cast<ConvOrder>(word(CpuConvField::kOrder)),
                       .taps = static_cast<ConvTaps>(word(CpuConvField::kTaps)),
                       .copy = static_cast<ConvCopy>(word(CpuConvField::kCopy)),
                       .threads = word(CpuConvField::kThreads),
                       .split = static_cast<ConvSplit>(word(CpuConvField::kSplit))};
}

Config CpuConvConfig::to_config() const {
  return Config{
      .schema = cpu_conv_schema_id(),
      .words = {static_cast<std::int32_t>(isa), static_cast<std::int32_t>(algorithm), mr, nr, rows,
                kc, static_cast<std::int32_t>(order), static_cast<std::int32_t>(taps),
                static_cast<std::int32_t>(copy), threads, static_cast<std::int32_t>(split)}};
}

}  // namespace foretune
