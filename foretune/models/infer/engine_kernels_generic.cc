#include "foretune/models/infer/engine_kernels_inl.h"

namespace foretune {

const EngineKernels* engine_kernels_generic() {
  static constexpr EngineKernels kKernels{
      &PlainOperations::range, &PlainOperations::quantise<std::uint8_t>,
      &PlainOperations::quantise<std::uint16_t>, &run_trees<PlainOperations>};
  return &kKernels;
}

const EngineKernels* engine_kernels(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return engine_kernels_avx512();
    case CpuIsa::kAvx2:
      return engine_kernels_avx2();
    case CpuIsa::kGeneric:
      break;
  }
  return engine_kernels_generic();
}

}  // namespace foretune
