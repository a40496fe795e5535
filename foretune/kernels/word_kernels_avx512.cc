// Defines the kernels for words other than f32, in a separate file because kernels take long to
// compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"

namespace foretune {
namespace {

// Adds two products of bf16 at a time. Written as assembler text, the instructions need no flag
// that would let the compiler use them elsewhere in this file.
struct Avx512Bf16 : Avx512 {
  static constexpr KernelMath kMath = KernelMath::kBf16Pairs;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

struct Avx512Integers : Avx512 {
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
};

// Adds four products of an unsigned and a signed byte.
struct Avx512Vnni : Avx512Integers {
  static constexpr KernelMath kMath = KernelMath::kI8Quads;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

struct Avx512Pairs : Avx512Integers {
  static constexpr KernelMath kMath = KernelMath::kI16Pairs;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    sum =
        add(sum,
            _mm512_castsi512_ps(_mm512_madd_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b))));
  }
};

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
      break;
  }
  return nullptr;
}

}  // namespace foretune

#endif
