// Defines the kernels of convolutions for words other than f32, in a separate file because kernels
// take long to compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_words_inl.h"

namespace foretune {
namespace {

constexpr TapKernelSet kBf16Kernels = make_tap_kernel_set<Avx512Bf16>();
constexpr TapKernelSet kShiftedKernels = make_tap_kernel_set<Avx512Shifted>();
constexpr TapKernelSet kPairKernels = make_tap_kernel_set<Avx512Pairs>();

}  // namespace

const TapKernelSet* avx512_word_tap_kernel_set(KernelMath math) {
  switch (math) {
    case KernelMath::kBf16Pairs:
      return &kBf16Kernels;
    case KernelMath::kI8Shifted:
      return &kShiftedKernels;
    case KernelMath::kI16Pairs:
      return &kPairKernels;
    case KernelMath::kF32:
    case KernelMath::kI8Quads:
    case KernelMath::kI8Tiles:
    case KernelMath::kBf16Tiles:
      break;
  }
  return nullptr;
}

}  // namespace foretune

#endif
