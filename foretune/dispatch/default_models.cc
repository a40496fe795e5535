#include "foretune/dispatch/default_models.h"

#include <array>

#include "foretune/base/check.h"

// The files as they are, between two symbols each.
#define FORETUNE_EMBED(symbol, file)                                    \
  asm(".pushsection .rodata\n"                                          \
      ".balign 64\n"                                                    \
      ".globl foretune_model_" symbol "_begin, foretune_model_" symbol  \
      "_end\n"                                                          \
      ".hidden foretune_model_" symbol "_begin, foretune_model_" symbol \
      "_end\n"                                                          \
      "foretune_model_" symbol                                          \
      "_begin:\n"                                                       \
      ".incbin \"" FORETUNE_MODELS_DIR "/" file                         \
      "\"\n"                                                            \
      "foretune_model_" symbol                                          \
      "_end:\n"                                                         \
      ".byte 0\n"                                                       \
      ".popsection\n")

FORETUNE_EMBED("avx512_1", "cpu-gemm-avx512-1.ftm");
FORETUNE_EMBED("avx512_2", "cpu-gemm-avx512-2.ftm");
FORETUNE_EMBED("avx2_1", "cpu-gemm-avx2-1.ftm");

// Assembler names, which exist in this file only.
// NOLINTBEGIN(*-avoid-c-arrays, *-identifier-naming)
extern const std::byte kAvx512One[] asm("foretune_model_avx512_1_begin");
extern const std::byte kAvx512OneEnd[] asm("foretune_model_avx512_1_end");
extern const std::byte kAvx512Two[] asm("foretune_model_avx512_2_begin");
extern const std::byte kAvx512TwoEnd[] asm("foretune_model_avx512_2_end");
extern const std::byte kAvx2One[] asm("foretune_model_avx2_1_begin");
extern const std::byte kAvx2OneEnd[] asm("foretune_model_avx2_1_end");
// NOLINTEND(*-avoid-c-arrays, *-identifier-naming)

namespace foretune {

std::span<const DefaultModel> default_models() {
  static const std::array kModels{
      DefaultModel{"cpu-gemm-avx512-1", CpuIsa::kAvx512, 1, {kAvx512One, kAvx512OneEnd}},
      DefaultModel{"cpu-gemm-avx512-2", CpuIsa::kAvx512, 2, {kAvx512Two, kAvx512TwoEnd}},
      DefaultModel{"cpu-gemm-avx2-1", CpuIsa::kAvx2, 1, {kAvx2One, kAvx2OneEnd}},
  };
  return kModels;
}

std::optional<Model> default_gemm_model(CpuIsa isa, int threads) {
  const DefaultModel* best = nullptr;
  for (const DefaultModel& model : default_models()) {
    if (model.isa <= isa && model.threads == threads &&
        (best == nullptr || model.isa > best->isa)) {
      best = &model;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  Result<Model> model = parse_model(best->bytes);
  FORETUNE_CHECK(model.has_value());  // a test reads all of them
  return *std::move(model);
}

}  // namespace foretune
