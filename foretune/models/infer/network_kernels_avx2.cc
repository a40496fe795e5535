#include "foretune/models/infer/network_kernels_inl.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace foretune {
namespace {

// 12 sums, three vectors of values and a weight: all 16 registers.
struct Avx2 {
  using V = __m256;
  static constexpr std::size_t kWidth = 8;
  static constexpr std::size_t kVectors = 3;
  static constexpr std::size_t kOutputs = 4;
  static V load(const float* from) { return _mm256_load_ps(from); }
  static void store(float* to, V value) { _mm256_store_ps(to, value); }
  static V set(float value) { return _mm256_set1_ps(value); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V max0(V a) { return _mm256_max_ps(a, _mm256_setzero_ps()); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
};

}  // namespace

const NetworkKernels* network_kernels_avx2() {
  static constexpr NetworkKernels kKernels{"AVX2", &dense<Avx2>, &towers<Avx2>};
  return &kKernels;
}

}  // namespace foretune
#else
namespace foretune {
const NetworkKernels* network_kernels_avx2() { return nullptr; }
}  // namespace foretune
#endif
