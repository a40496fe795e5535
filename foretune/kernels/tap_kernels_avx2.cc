// Defines the kernels of convolutions, in a separate file because kernels take long to compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "foretune/kernels/internal/avx2_inl.h"

namespace foretune {
namespace {

constexpr TapKernelSet kKernels = make_tap_kernel_set<Avx2>();
constexpr TapKernelSet kPairKernels = make_tap_kernel_set<Avx2Pairs>();

}  // namespace

const TapKernelSet* avx2_tap_kernel_set(KernelMath math) {
  return math == KernelMath::kF32        ? &kKernels
         : math == KernelMath::kI16Pairs ? &kPairKernels
                                         : nullptr;
}

}  // namespace foretune

#else

namespace foretune {

const TapKernelSet* avx2_tap_kernel_set(KernelMath /*math*/) { return nullptr; }

}  // namespace foretune

#endif
