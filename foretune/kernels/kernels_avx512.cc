#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"

namespace foretune {
namespace {

constexpr KernelSet kKernels = make_kernel_set<Avx512>();

}  // namespace

const KernelSet* avx512_kernel_set(KernelMath math) {
  return math == KernelMath::kF32 ? &kKernels : avx512_word_kernel_set(math);
}

}  // namespace foretune

#else

namespace foretune {

const KernelSet* avx512_kernel_set(KernelMath /*math*/) { return nullptr; }

}  // namespace foretune

#endif
