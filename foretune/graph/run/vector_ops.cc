#include "foretune/graph/run/vector_ops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "foretune/graph/run/internal/vector_ops_isa.h"

namespace foretune::graph {

namespace {

// Returns the entry of a table at the place of a name, or nullptr.
template <class Function, std::size_t kCount>
Function named(const std::array<Function, kCount>& table,
               const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : table[static_cast<std::size_t>(found - names.begin())];
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

UnaryFunction VectorOps::unary_of(std::string_view op) const {
  return named(unary, kUnaryLoops, op);
}

BinaryFunction VectorOps::binary_of(std::string_view op) const {
  return named(binary, kBinaryLoops, op);
}

}  // namespace foretune::graph
