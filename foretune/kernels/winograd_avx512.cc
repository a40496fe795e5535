#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"
#include "foretune/kernels/internal/winograd_inl.h"

namespace foretune {

const WinogradKernels* avx512_winograd_kernels(bool large) {
  return winograd_kernels_of<Avx512>(large);
}

}  // namespace foretune

#else

namespace foretune {

const WinogradKernels* avx512_winograd_kernels(bool /*large*/) { return nullptr; }

}  // namespace foretune

#endif
