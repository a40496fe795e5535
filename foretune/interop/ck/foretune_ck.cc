#include "foretune/interop/ck/foretune_ck.h"

#include <cstdint>
#include <span>
#include <string>

#include "foretune/base/c_text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem.h"

namespace foretune {
namespace {

// Returns an empty text when there is no such kernel.
std::string ck_name(std::int32_t dtype, std::int32_t layout, std::span<const std::int32_t> words) {
  const ConfigSchema& schema = ck_gemm_schema();
  const ProblemSchema& problem = *find_problem_schema(kGemmProblem);
  const auto has_label = [&](GemmField field, std::int32_t label) {
    const auto& labels = problem.fields[static_cast<std::size_t>(field)].labels;
    return label >= 0 && static_cast<std::size_t>(label) < labels.size();
  };
  if (words.size() != schema.parameters.size() || !has_label(GemmField::kDtype, dtype) ||
      !has_label(GemmField::kLayout, layout)) {
    return {};
  }
  const CkGemmKernel kernel{.dtype = static_cast<DataType>(dtype),
                            .layout = static_cast<GemmLayout>(layout),
                            .config = {.schema = schema.id(), .words = Config::Words(words)}};
  return ck_gemm_name(kernel).value_or(std::string());
}

}  // namespace
}  // namespace foretune

extern "C" {

size_t foretune_ck_gemm_name(int32_t dtype, int32_t layout, const int32_t* words,
                             uint32_t word_count, char* text, size_t size) {
  foretune::copy_text("", text, size);
  if (words == nullptr) {
    return 0;
  }
  try {
    return foretune::copy_text(foretune::ck_name(dtype, layout, {words, word_count}), text, size);
  } catch (...) {
    return 0;
  }
}

}  // extern "C"
