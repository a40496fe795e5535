#include "foretune/model/forest/internal/engine_small_inl.h"

namespace foretune {

const EngineKernels* engine_kernels_generic() { return kernels_of<PlainOperations>(); }

const EngineKernels* engine_kernels(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return __builtin_cpu_supports("avx512vbmi") != 0 && engine_kernels_vbmi() != nullptr
                 ? engine_kernels_vbmi()
                 : engine_kernels_avx512();
    case CpuIsa::kAvx2:
      return engine_kernels_avx2();
    case CpuIsa::kGeneric:
      break;
  }
  return engine_kernels_generic();
}

}  // namespace foretune
