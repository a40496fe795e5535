#include "foretune/graph/run/vector_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "foretune/graph/run/internal/vector_ops_isa.h"

namespace foretune::graph {

namespace {

template <class Kernel, std::size_t kCount>
std::optional<Kernel> position_of(const std::array<std::string_view, kCount>& names,
                                  std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return {};
  }
  return static_cast<Kernel>(found - names.begin());
}

}  // namespace

const VectorOps& vector_ops(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_vector_ops();
    case CpuIsa::kAvx2:
      return avx2_vector_ops();
    case CpuIsa::kGeneric:
      break;
  }
  return generic_vector_ops();
}

std::optional<UnaryKernel> unary_kernel(std::string_view op) {
  static constexpr std::array<std::string_view, kUnaryKernels> kNames{
      "relu", "sigmoid",   "tanh", "erf",        "exp",      "sqrt", "abs",        "neg",
      "gelu", "gelu_tanh", "silu", "hard_swish", "softplus", "clip", "leaky_relu", "hard_sigmoid"};
  return position_of<UnaryKernel>(kNames, op);
}

std::optional<BinaryKernel> binary_kernel(std::string_view op) {
  static constexpr std::array<std::string_view, kBinaryKernels> kNames{"add", "sub", "mul",
                                                                       "div", "max", "min"};
  return position_of<BinaryKernel>(kNames, op);
}

}  // namespace foretune::graph
