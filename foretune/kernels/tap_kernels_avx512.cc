// Defines the kernels of convolutions, in a separate file because kernels take long to compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"

namespace foretune {
namespace {

constexpr TapKernelSet kKernels = make_tap_kernel_set<Avx512>();

}  // namespace

const TapKernelSet* avx512_tap_kernel_set(KernelMath math) {
  switch (math) {
    case KernelMath::kF32:
      return &kKernels;
    case KernelMath::kI8Tiles:
    case KernelMath::kBf16Tiles:
      return avx512_tile_tap_kernel_set(math);
    default:
      return avx512_word_tap_kernel_set(math);
  }
}

}  // namespace foretune

#else

namespace foretune {

const TapKernelSet* avx512_tap_kernel_set(KernelMath /*math*/) { return nullptr; }

}  // namespace foretune

#endif
