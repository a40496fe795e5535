#include "foretune/space/schemas/cpu_gemm.h"

#include <array>
#include <string_view>

namespace foretune {
namespace {

std::int32_t cpu_gemm_word(const Config& config, CpuGemmField field) {
  return config.words[static_cast<std::size_t>(field)];
}

// Ids are compared for every config that is read; hashing the schema each time would cost more
// than all the rest.
std::uint64_t cpu_gemm_schema_id() {
  static const std::uint64_t kId = cpu_gemm_schema().id();
  return kId;
}

}  // namespace

const ConfigSchema& cpu_gemm_schema() {
  static const ConfigSchema kSchema{.name = "cpu-gemm",
                                    .version = 2,
                                    .kind = SchemaKind::kParametric,
                                    .parameters = {{"isa", {"generic", "avx2", "avx512"}},
                                                   {"kernel", {"outer", "dot"}},
                                                   {"mr", {}},
                                                   {"nr", {}},
                                                   {"pack_a", {"no", "yes"}},
                                                   {"pack_b", {"no", "yes"}},
                                                   {"mc", {}},
                                                   {"nc", {}},
                                                   {"kc", {}},
                                                   {"order", {"nkm", "mkn"}},
                                                   {"unroll", {}},
                                                   {"prefetch", {}},
                                                   {"threads", {}},
                                                   {"split", {"m", "n", "batch", "grid", "k"}}}};
  return kSchema;
}

Result<CpuGemmConfig> CpuGemmConfig::from(const Config& config) {
  if (config.schema != cpu_gemm_schema_id() || config.words.size() != kCpuGemmWords) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema cpu-gemm");
  }
  struct Range {
    CpuGemmField field;
    std::int32_t low;
    std::int32_t high;
  };
  constexpr std::int32_t kMaxBlock = 1 << 24;
  static constexpr std::array<Range, kCpuGemmWords> kRanges{{{CpuGemmField::kIsa, 0, 2},
                                                             {CpuGemmField::kKernel, 0, 1},
                                                             {CpuGemmField::kMr, 1, 64},
                                                             {CpuGemmField::kNr, 1, 1024},
                                                             {CpuGemmField::kPackA, 0, 1},
                                                             {CpuGemmField::kPackB, 0, 1},
                                                             {CpuGemmField::kMc, 1, kMaxBlock},
                                                             {CpuGemmField::kNc, 1, kMaxBlock},
                                                             {CpuGemmField::kKc, 1, kMaxBlock},
                                                             {CpuGemmField::kOrder, 0, 1},
                                                             {CpuGemmField::kUnroll, 1, 4},
                                                             {CpuGemmField::kPrefetch, 0, 1024},
                                                             {CpuGemmField::kThreads, 1, 1024},
                                                             {CpuGemmField::kSplit, 0, 4}}};
  for (const Range& range : kRanges) {
    const std::int32_t value = cpu_gemm_word(config, range.field);
    if (value < range.low || value > range.high) {
      return fail(ErrorCode::kInvalidArgument,
                  cpu_gemm_schema().parameters[static_cast<std::size_t>(range.field)].name,
                  " must be from ", range.low, " to ", range.high, ", not ", value);
    }
  }
  return CpuGemmConfig{
      .isa = static_cast<CpuIsa>(cpu_gemm_word(config, CpuGemmField::kIsa)),
      .kernel = static_cast<GemmKernel>(cpu_gemm_word(config, CpuGemmField::kKernel)),
      .mr = cpu_gemm_word(config, CpuGemmField::kMr),
      .nr = cpu_gemm_word(config, CpuGemmField::kNr),
      .pack_a = cpu_gemm_word(config, CpuGemmField::kPackA) != 0,
      .pack_b = cpu_gemm_word(config, CpuGemmField::kPackB) != 0,
      .mc = cpu_gemm_word(config, CpuGemmField::kMc),
      .nc = cpu_gemm_word(config, CpuGemmField::kNc),
      .kc = cpu_gemm_word(config, CpuGemmField::kKc),
      .order = static_cast<GemmLoopOrder>(cpu_gemm_word(config, CpuGemmField::kOrder)),
      .unroll = cpu_gemm_word(config, CpuGemmField::kUnroll),
      .prefetch = cpu_gemm_word(config, CpuGemmField::kPrefetch),
      .threads = cpu_gemm_word(config, CpuGemmField::kThreads),
      .split = static_cast<GemmSplit>(cpu_gemm_word(config, CpuGemmField::kSplit))};
}

Config CpuGemmConfig::to_config() const {
  return Config{
      .schema = cpu_gemm_schema_id(),
      .words = {static_cast<std::int32_t>(isa), static_cast<std::int32_t>(kernel), mr, nr,
                pack_a ? 1 : 0, pack_b ? 1 : 0, mc, nc, kc, static_cast<std::int32_t>(order),
                unroll, prefetch, threads, static_cast<std::int32_t>(split)}};
}

}  // namespace foretune
