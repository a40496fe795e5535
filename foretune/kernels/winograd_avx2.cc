#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "foretune/kernels/internal/avx2_inl.h"
#include "foretune/kernels/internal/winograd_inl.h"

namespace foretune {

const WinogradKernels* avx2_winograd_kernels(bool large) {
  return winograd_kernels_of<Avx2>(large);
}

}  // namespace foretune

#else

namespace foretune {

const WinogradKernels* avx2_winograd_kernels(bool /*large*/) { return nullptr; }

}  // namespace foretune

#endif
