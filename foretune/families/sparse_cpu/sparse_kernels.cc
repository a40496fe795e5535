#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

SparseKernelTables tables_of(CpuIsa isa) {
  // Computed once, because it takes system calls on some machines.
  static const CpuIsa kBest = best_cpu_isa();
  if (static_cast<int>(isa) > static_cast<int>(kBest)) {
    return {};
  }
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_sparse_kernels();
    case CpuIsa::kAvx2:
      return avx2_sparse_kernels();
    case CpuIsa::kGeneric:
      break;
  }
  return generic_sparse_kernels();
}

}  // namespace

template <>
const SparseKernels<float>* sparse_kernels(CpuIsa isa) {
  return tables_of(isa).f32;
}
template <>
const SparseKernels<double>* sparse_kernels(CpuIsa isa) {
  return tables_of(isa).f64;
}

}  // namespace foretune::sparse_cpu
