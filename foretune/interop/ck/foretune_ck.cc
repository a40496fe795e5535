#include "foretune/interop/ck/foretune_ck.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/c_text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem.h"

namespace foretune {
namespace {

bool has_label(ProblemType type, std::string_view field, std::int64_t label) {
  const ProblemSchema& schema = *find_problem_schema(type);
  const auto& labels = schema.fields[*schema.find(field)].labels;
  return label >= 0 && static_cast<std::size_t>(label) < labels.size();
}

// Returns an empty text when there is no such kernel.
std::string gemm_name(std::int32_t dtype, std::int32_t layout,
                      std::span<const std::int32_t> words) {
  if (!has_label(kGemmProblem, "dtype", dtype) || !has_label(kGemmProblem, "layout", layout)) {
    return {};
  }
  const ConfigSchema& schema = words.size() == ck_gemm_streamk_schema().parameters.size()
                                   ? ck_gemm_streamk_schema()
                                   : ck_gemm_schema();
  const CkGemmKernel kernel{.dtype = static_cast<DataType>(dtype),
                            .layout = static_cast<GemmLayout>(layout),
                            .config = {.schema = schema.id(), .words = Config::Words(words)}};
  return ck_gemm_name(kernel).value_or(std::string());
}

std::string conv_name(std::int64_t op, std::int64_t dtype, std::int32_t spatial_dims,
                      std::span<const std::int32_t> words) {
  if (!has_label(kConvProblem, "op", op) || !has_label(kConvProblem, "dtype", dtype)) {
    return {};
  }
  const CkConvKernel kernel{
      .variant = static_cast<CkConvVariant>(op),
      .dtype = static_cast<DataType>(dtype),
      .spatial_dims = spatial_dims,
      .config = {.schema = ck_grouped_conv_schema().id(), .words = Config::Words(words)}};
  return ck_conv_name(kernel).value_or(std::string());
}

// Writes what `name` returns for words that may be missing.
template <class Name>
std::size_t write_name(const Name& name, const std::int32_t* words, char* text, std::size_t size) {
  copy_text("", text, size);
  if (words == nullptr) {
    return 0;
  }
  try {
    return copy_text(name(), text, size);
  } catch (...) {
    return 0;
  }
}

}  // namespace
}  // namespace foretune

extern "C" {

size_t foretune_ck_gemm_name(int32_t dtype, int32_t layout, const int32_t* words,
                             uint32_t word_count, char* text, size_t size) {
  return foretune::write_name(
      [&] { return foretune::gemm_name(dtype, layout, {words, word_count}); }, words, text, size);
}

size_t foretune_ck_conv_name(int64_t op, int64_t dtype, int32_t spatial_dims, const int32_t* words,
                             uint32_t word_count, char* text, size_t size) {
  return foretune::write_name(
      [&] { return foretune::conv_name(op, dtype, spatial_dims, {words, word_count}); }, words,
      text, size);
}

}  // extern "C"
