// Defines the kernels for words other than f32, in a separate file because kernels take long to
// compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_words_inl.h"

namespace foretune {
namespace {

constexpr KernelSet kBf16Kernels = make_kernel_set<Avx512Bf16>();
constexpr KernelSet kVnniKernels = make_kernel_set<Avx512Vnni>();
constexpr KernelSet kPairKernels = make_kernel_set<Avx512Pairs>();

}  // namespace

const KernelSet* avx512_word_kernel_set(KernelMath math) {
  switch (math) {
    case KernelMath::kBf16Pairs:
      return &kBf16Kernels;
    case KernelMath::kI8Quads:
      return &kVnniKernels;
    case KernelMath::kI16Pairs:
      return &kPairKernels;
    case KernelMath::kF32:
    case KernelMath::kI8Shifted:
    case KernelMath::kI8Tiles:
    case KernelMath::kBf16Tiles:
      break;
  }
  return nullptr;
}

}  // namespace foretune

#endif
