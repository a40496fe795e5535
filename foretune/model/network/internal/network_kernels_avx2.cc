#include "foretune/model/network/internal/network_int8_inl.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace foretune {
namespace {

// 12 sums, three vectors of values and a weight: all 16 registers.
struct Avx2 {
  static constexpr const char* kName = "AVX2";
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

  // 8 sums, four halves of values and two of a weight. The instruction that multiplies pairs of 8
  // bits saturates; that of 16 bits is exact.
  using I = __m256i;
  struct Quads {
    I even;
    I odd;
  };
  using Weights = Quads;
  static constexpr std::size_t kInt8Vectors = 2;
  static constexpr std::size_t kInt8Outputs = 4;
  static I zero() { return _mm256_setzero_si256(); }
  static Quads load_quads(const std::uint8_t* from) {
    const I all = _mm256_load_si256(reinterpret_cast<const I*>(from));
    return {_mm256_and_si256(all, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(all, 8)};
  }
  static Weights set_weights(const std::int8_t* from) {
    int four = 0;
    __builtin_memcpy(&four, from, sizeof(four));
    const I all = _mm256_set1_epi32(four);
    return {_mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8), _mm256_srai_epi16(all, 8)};
  }
  static I dot(I sum, Quads values, Weights weights) {
    return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_madd_epi16(values.even, weights.even),
                                                  _mm256_madd_epi16(values.odd, weights.odd)));
  }
  static V to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V div(V a, V b) { return _mm256_div_ps(a, b); }
  static V least(V a, V b) { return _mm256_min_ps(a, b); }
  static V most(V a, V b) { return _mm256_max_ps(a, b); }
  static V div_where_above(V a, V b, V bound) {
    return _mm256_and_ps(_mm256_cmp_ps(b, bound, _CMP_GT_OQ), _mm256_div_ps(a, b));
  }
  static I shifted(V a, int bits) { return _mm256_slli_epi32(_mm256_cvtps_epi32(a), bits); }
  static void to_quads(std::uint8_t* to, const V (&values)[kNetworkQuad]) {
    const I low = _mm256_or_si256(_mm256_cvtps_epi32(values[0]), shifted(values[1], 8));
    const I high = _mm256_or_si256(shifted(values[2], 16), shifted(values[3], 24));
    _mm256_store_si256(reinterpret_cast<I*>(to), _mm256_or_si256(low, high));
  }
};

}  // namespace

const NetworkKernels* network_kernels_avx2() { return kernels_of<Avx2>(); }

}  // namespace foretune
#else
namespace foretune {
const NetworkKernels* network_kernels_avx2() { return nullptr; }
}  // namespace foretune
#endif
