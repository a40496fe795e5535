#include "foretune/dispatch/default_models.h"

#include <array>

#include "foretune/base/check.h"

// The file as it is, between two symbols that are seen in this library only: name and name##End.
// NOLINTBEGIN(*-avoid-c-arrays, *-identifier-naming, bugprone-macro-parentheses)
#define FORETUNE_EMBED(name, file)                              \
  asm(".pushsection .rodata\n"                                  \
      ".balign 64\n"                                            \
      ".globl foretune_model_" #name ", foretune_model_" #name  \
      "_end\n"                                                  \
      ".hidden foretune_model_" #name ", foretune_model_" #name \
      "_end\n"                                                  \
      "foretune_model_" #name                                   \
      ":\n"                                                     \
      ".incbin \"" FORETUNE_MODELS_DIR "/" file                 \
      "\"\n"                                                    \
      "foretune_model_" #name                                   \
      "_end:\n"                                                 \
      ".byte 0\n"                                               \
      ".popsection\n");                                         \
  extern const std::byte name[] asm("foretune_model_" #name);   \
  extern const std::byte name##End[] asm("foretune_model_" #name "_end")

FORETUNE_EMBED(kAvx512One, "cpu-gemm-avx512-1.ftm");
FORETUNE_EMBED(kAvx512Two, "cpu-gemm-avx512-2.ftm");
FORETUNE_EMBED(kAvx2One, "cpu-gemm-avx2-1.ftm");
FORETUNE_EMBED(kConvAvx512One, "cpu-conv-avx512-1.ftm");
FORETUNE_EMBED(kSparseAvx512One, "sparse-cpu-avx512-1.ftm");
FORETUNE_EMBED(kCublasltSm90, "cublaslt-sm_90.ftm");
FORETUNE_EMBED(kCudnnForwardSm90, "cudnn-forward-sm_90.ftm");
FORETUNE_EMBED(kCudnnDataSm90, "cudnn-backward_data-sm_90.ftm");
FORETUNE_EMBED(kCudnnWeightSm90, "cudnn-backward_weight-sm_90.ftm");
// NOLINTEND(*-avoid-c-arrays, *-identifier-naming, bugprone-macro-parentheses)

namespace foretune {

std::span<const DefaultModel> default_models() {
  static const std::array kModels{
      DefaultModel{
          "cpu-gemm", "cpu-gemm-avx512-1", CpuIsa::kAvx512, 1, {kAvx512One, kAvx512OneEnd}},
      DefaultModel{
          "cpu-gemm", "cpu-gemm-avx512-2", CpuIsa::kAvx512, 2, {kAvx512Two, kAvx512TwoEnd}},
      DefaultModel{"cpu-gemm", "cpu-gemm-avx2-1", CpuIsa::kAvx2, 1, {kAvx2One, kAvx2OneEnd}},
      DefaultModel{
          "cpu-conv", "cpu-conv-avx512-1", CpuIsa::kAvx512, 1, {kConvAvx512One, kConvAvx512OneEnd}},
      DefaultModel{"sparse-cpu",
                   "sparse-cpu-avx512-1",
                   CpuIsa::kAvx512,
                   1,
                   {kSparseAvx512One, kSparseAvx512OneEnd}},
  };
  return kModels;
}

std::optional<Model> default_cpu_model(std::string_view family, CpuIsa isa, int threads) {
  const DefaultModel* best = nullptr;
  for (const DefaultModel& model : default_models()) {
    if (model.family == family && model.isa <= isa && model.threads == threads &&
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

std::span<const DefaultCublasltModel> default_cublaslt_models() {
  static const std::array kModels{
      DefaultCublasltModel{"cublaslt-sm_90", {kCublasltSm90, kCublasltSm90End}}};
  return kModels;
}

std::span<const DefaultCudnnModel> default_cudnn_models() {
  static const std::array kModels{DefaultCudnnModel{ConvOperation::kForward,
                                                    "cudnn-forward-sm_90",
                                                    {kCudnnForwardSm90, kCudnnForwardSm90End}},
                                  DefaultCudnnModel{ConvOperation::kBackwardData,
                                                    "cudnn-backward_data-sm_90",
                                                    {kCudnnDataSm90, kCudnnDataSm90End}},
                                  DefaultCudnnModel{ConvOperation::kBackwardWeight,
                                                    "cudnn-backward_weight-sm_90",
                                                    {kCudnnWeightSm90, kCudnnWeightSm90End}}};
  return kModels;
}

}  // namespace foretune
