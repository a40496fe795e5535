// The operations of AVX-512, for network_kernels_avx512.cc and network_kernels_vnni.cc alone: see
// network_kernels_inl.h and network_int8_inl.h.
//
// Unmasked intrinsics are avoided where g++ 12 warns of what they are made of.
#pragma once

#include "foretune/model/network/internal/network_int8_inl.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__FMA__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace foretune {
namespace {

// 24 sums, three vectors of values and a weight: 28 of 32 registers, 11 loads for 24 multiply-adds.
struct Avx512 {
  static constexpr const char* kName = "AVX-512";
  using V = __m512;
  static constexpr std::size_t kWidth = 16;
  static constexpr std::size_t kVectors = 3;
  static constexpr std::size_t kOutputs = 8;
  static constexpr __mmask16 kAll = 0xffff;
  static V load(const float* from) { return _mm512_load_ps(from); }
  static void store(float* to, V value) { _mm512_store_ps(to, value); }
  static V set(float value) { return _mm512_set1_ps(value); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V max0(V a) { return _mm512_maskz_max_ps(kAll, a, _mm512_setzero_ps()); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }

  // 12 sums, six halves of values and two of a weight: 16-bit products of pairs are exact, where
  // those of 8 bits would saturate.
  using I = __m512i;
  struct Quads {
    I even;
    I odd;
  };
  using Weights = Quads;
  static constexpr std::size_t kInt8Vectors = 3;
  static constexpr std::size_t kInt8Outputs = 4;
  static I zero() { return _mm512_setzero_si512(); }
  static I load_quads_whole(const std::uint8_t* from) { return _mm512_load_si512(from); }
  static I set_weights_whole(const std::int8_t* from) {
    int four = 0;
    __builtin_memcpy(&four, from, sizeof(four));
    return _mm512_set1_epi32(four);
  }
  static Quads load_quads(const std::uint8_t* from) {
    const I all = load_quads_whole(from);
    return {_mm512_and_si512(all, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(all, 8)};
  }
  static Weights set_weights(const std::int8_t* from) {
    const I all = set_weights_whole(from);
    return {_mm512_srai_epi16(_mm512_slli_epi16(all, 8), 8), _mm512_srai_epi16(all, 8)};
  }
  static I dot(I sum, Quads values, Weights weights) {
    return _mm512_add_epi32(sum, _mm512_add_epi32(_mm512_madd_epi16(values.even, weights.even),
                                                  _mm512_madd_epi16(values.odd, weights.odd)));
  }
  static V to_float(I a) { return _mm512_maskz_cvtepi32_ps(kAll, a); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V div(V a, V b) { return _mm512_div_ps(a, b); }
  static V least(V a, V b) { return _mm512_maskz_min_ps(kAll, a, b); }
  static V most(V a, V b) { return _mm512_maskz_max_ps(kAll, a, b); }
  static V div_where_above(V a, V b, V bound) {
    return _mm512_maskz_div_ps(_mm512_cmp_ps_mask(b, bound, _CMP_GT_OQ), a, b);
  }
  static I rounded(V a) { return _mm512_maskz_cvtps_epi32(kAll, a); }
  static I shifted(V a, unsigned bits) { return _mm512_maskz_slli_epi32(kAll, rounded(a), bits); }
  static void to_quads(std::uint8_t* to, const V (&values)[kNetworkQuad]) {
    const I low = _mm512_or_si512(rounded(values[0]), shifted(values[1], 8));
    const I high = _mm512_or_si512(shifted(values[2], 16), shifted(values[3], 24));
    _mm512_store_si512(to, _mm512_or_si512(low, high));
  }
};

}  // namespace
}  // namespace foretune
#endif
