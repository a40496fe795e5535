#include "foretune/models/infer/network_kernels_inl.h"

#if defined(__AVX512F__) && defined(__FMA__)
#include <immintrin.h>

namespace foretune {
namespace {

// 24 sums, three vectors of values and a weight: 28 of 32 registers, 11 loads for 24 multiply-adds.
struct Avx512 {
  using V = __m512;
  static constexpr std::size_t kWidth = 16;
  static constexpr std::size_t kVectors = 3;
  static constexpr std::size_t kOutputs = 8;
  static V load(const float* from) { return _mm512_load_ps(from); }
  static void store(float* to, V value) { _mm512_store_ps(to, value); }
  static V set(float value) { return _mm512_set1_ps(value); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  // With a mask of all lanes: g++ 12 warns of what its unmasked one is made of.
  static V max0(V a) { return _mm512_maskz_max_ps(0xffff, a, _mm512_setzero_ps()); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
};

}  // namespace

const NetworkKernels* network_kernels_avx512() {
  static constexpr NetworkKernels kKernels{"AVX-512", &dense<Avx512>, &towers<Avx512>};
  return &kKernels;
}

}  // namespace foretune
#else
namespace foretune {
const NetworkKernels* network_kernels_avx512() { return nullptr; }
}  // namespace foretune
#endif
