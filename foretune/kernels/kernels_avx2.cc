#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "foretune/kernels/internal/avx2_inl.h"

namespace foretune {
namespace {

constexpr KernelSet kKernels = make_kernel_set<Avx2>();
constexpr KernelSet kPairKernels = make_kernel_set<Avx2Pairs>();

}  // namespace

const KernelSet* avx2_kernel_set(KernelMath math) {
  return math == KernelMath::kF32        ? &kKernels
         : math == KernelMath::kI16Pairs ? &kPairKernels
                                         : nullptr;
}

}  // namespace foretune

#else

namespace foretune {

const KernelSet* avx2_kernel_set(KernelMath /*math*/) { return nullptr; }

}  // namespace foretune

#endif
