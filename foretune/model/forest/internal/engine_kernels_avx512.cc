#include "foretune/model/forest/internal/engine_avx512_inl.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
namespace foretune {

const EngineKernels* engine_kernels_avx512() { return kernels_of<Avx512Operations>(); }

}  // namespace foretune
#else
namespace foretune {
const EngineKernels* engine_kernels_avx512() { return nullptr; }
}  // namespace foretune
#endif
