#include "foretune/model/forest/internal/engine_avx512_inl.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
namespace foretune {

const EngineKernels* engine_kernels_avx512() {
  static constexpr EngineKernels kKernels{"AVX-512",
                                          &Avx512Operations::range,
                                          &Avx512Operations::quantise<std::uint8_t>,
                                          &Avx512Operations::quantise<std::uint16_t>,
                                          &run_trees<Avx512Operations>,
                                          false};
  return &kKernels;
}

}  // namespace foretune
#else
namespace foretune {
const EngineKernels* engine_kernels_avx512() { return nullptr; }
}  // namespace foretune
#endif
