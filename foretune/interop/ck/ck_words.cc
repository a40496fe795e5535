#include "foretune/interop/ck/ck_words.h"

#include <array>
#include <cstdint>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

constexpr std::string_view kConvOperation = "grouped_conv";
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDirections{
    {{"fwd", "forward"},
     {"forward", "forward"},
     {"bwd_data", "backward_data"},
     {"bwd_weight", "backward_weight"}}};
constexpr std::array<std::string_view, 4> kGemmOperations{"gemm_universal", "gemm",
                                                          "gemm_preshuffle", "gemm_streamk"};

std::string gemm_kernel_name(const Problem& problem, const Config& config) {
  const auto gemm = GemmProblem::from(problem);
  if (!gemm) {
    return {};
  }
  const auto name =
      ck_gemm_name({.dtype = gemm->dtype(), .layout = gemm->layout(), .config = config});
  if (!name) {
    return {};
  }
  const std::int32_t split_k = config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)];
  return split_k == 1 ? *name : concat(*name, " split_k=", split_k);
}

std::string conv_kernel_name(const Problem& problem, const Config& config) {
  const auto conv = ConvProblem::from(problem);
  if (!conv) {
    return {};
  }
  return ck_conv_name({.variant = static_cast<CkConvVariant>(conv->sizes().operation),
                       .dtype = conv->sizes().dtype,
                       .spatial_dims = conv->is_3d() ? 3 : 2,
                       .config = config})
      .value_or(std::string());
}

}  // namespace

std::string_view our_label(std::string_view field, std::string_view word) {
  if (field == "dtype") {
    const auto type = parse_ck_dtype(word);
    return type ? to_string(*type) : word;
  }
  if (field == "op") {
    for (const auto& [theirs, ours] : kDirections) {
      if (theirs == word) {
        return ours;
      }
    }
  }
  return word;
}

std::optional<CkOperation> parse_ck_operation(std::string_view name) {
  for (const std::string_view gemm : kGemmOperations) {
    if (gemm == name) {
      return CkOperation{.type = kGemmProblem, .label = {}};
    }
  }
  if (!name.starts_with(kConvOperation)) {
    return std::nullopt;
  }
  name.remove_prefix(kConvOperation.size());
  if (name.empty()) {
    return CkOperation{.type = kConvProblem, .label = {}};
  }
  for (const auto& [theirs, ours] : kDirections) {
    if (name == concat("_", theirs)) {
      return CkOperation{.type = kConvProblem, .label = ours};
    }
  }
  return std::nullopt;
}

std::string ck_kernel_name(const Problem& problem, const Config& config) {
  if (config.schema == ck_gemm_schema().id() || config.schema == ck_gemm_streamk_schema().id()) {
    return gemm_kernel_name(problem, config);
  }
  return config.schema == ck_grouped_conv_schema().id() ? conv_kernel_name(problem, config)
                                                        : std::string();
}

}  // namespace foretune
