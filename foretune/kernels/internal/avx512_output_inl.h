// The steps from sums to an output (kernels/output_stage.h) in vectors of AVX-512. A file that
// includes this is compiled without contraction, because each step is rounded.
// Thread safety: free functions.
#pragma once

// Defines nothing where the instructions are missing.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <cstdint>

#include "foretune/kernels/internal/avx512_inl.h"

namespace foretune {
namespace {

// The masks select all lanes: the plain intrinsics pass on an undefined vector, about which GCC 12
// warns.

// Returns the values of bf16, and 0 in lanes that the mask lacks, which are not read.
FORETUNE_KERNEL_INLINE inline __m512 bf16_values(__mmask16 mask, const std::uint16_t* from) {
  const __m512i halves = _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, halves, 16));
}

// Rounds to bf16, a tie to even; a NaN stays one.
FORETUNE_KERNEL_INLINE inline __m256i bf16_of(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd =
      _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_mask_or_epi32(sum, is_nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_maskz_srli_epi32(0xffff, rounded, 16));
}

// Stores the columns that the mask has.
FORETUNE_KERNEL_INLINE inline void store_bf16(std::uint16_t* to, __mmask16 mask, __m256i halves) {
  if (mask == 0xffff) {
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), halves);
  } else {
    _mm256_mask_storeu_epi16(to, mask, halves);
  }
}

FORETUNE_KERNEL_INLINE inline __m512 scaled_sums(__m512i sums, __m512 scales) {
  return _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums), scales);
}

// Returns the values of bytes less their zero, times a scale.
FORETUNE_KERNEL_INLINE inline __m512 scaled_bytes(__mmask16 mask, const std::int8_t* from,
                                                  std::int32_t zero, float scale) {
  const __m512i bytes = _mm512_maskz_cvtepi8_epi32(0xffff, _mm_maskz_loadu_epi8(mask, from));
  const __m512i centred = _mm512_sub_epi32(bytes, _mm512_set1_epi32(zero));
  return _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, centred), _mm512_set1_ps(scale));
}

// Returns the nearest integers. Too large a value would become the least integer, as too small a
// one does.
FORETUNE_KERNEL_INLINE inline __m512i rounded_to_i32(__m512 value) {
  return _mm512_maskz_cvtps_epi32(0xffff,
                                  _mm512_maskz_min_ps(0xffff, _mm512_set1_ps(0x1p20F), value));
}

// Returns two to four vectors of rounded integers plus `zero` as bytes of at least `low`, in order.
// Saturated to 16 bits, a value is still so far out that the zero brings it not back.
template <int kVectors>
FORETUNE_KERNEL_INLINE inline __m512i bytes_of_integers(const __m512i* rounded, std::int32_t zero,
                                                        std::int32_t low) {
  const __m512i zeros = _mm512_set1_epi16(static_cast<short>(zero));
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(rounded[0], rounded[1]), zeros);
  const __m512i second =
      kVectors == 2 ? first
                    : _mm512_adds_epi16(
                          _mm512_packs_epi32(rounded[2], rounded[kVectors == 4 ? 3 : 2]), zeros);
  // Each pack puts quarters of vectors side by side.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_max_epi8(
      _mm512_maskz_permutexvar_epi32(0xffff, order, _mm512_packs_epi16(first, second)),
      _mm512_set1_epi8(static_cast<char>(low)));
}

// Stores up to four vectors of rounded integers plus `zero` as bytes of at least `low`. With kTail,
// the mask has the columns of the last vector.
template <int kVectors, bool kTail>
FORETUNE_KERNEL_INLINE inline void store_bytes(const __m512i* rounded, std::int8_t* to,
                                               std::int32_t zero, std::int32_t low,
                                               __mmask16 mask) {
  constexpr int kLanes = Avx512::kLanes;
  if constexpr (kVectors == 1) {
    const __m256i halves = _mm256_adds_epi16(_mm512_maskz_cvtsepi32_epi16(0xffff, rounded[0]),
                                             _mm256_set1_epi16(static_cast<short>(zero)));
    const __m128i bytes = _mm_max_epi8(_mm256_maskz_cvtsepi16_epi8(0xffff, halves),
                                       _mm_set1_epi8(static_cast<char>(low)));
    if (kTail && mask != 0xffff) {
      _mm_mask_storeu_epi8(to, mask, bytes);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to), bytes);
    }
  } else {
    const __m512i bytes = bytes_of_integers<kVectors>(rounded, zero, low);
    if (kTail) {
      const __mmask64 columns =
          (static_cast<__mmask64>(mask) << static_cast<unsigned>((kVectors - 1) * kLanes)) |
          ((__mmask64{1} << static_cast<unsigned>((kVectors - 1) * kLanes)) - 1);
      _mm512_mask_storeu_epi8(to, columns, bytes);
    } else {
      __builtin_memcpy(to, &bytes, std::size_t{kVectors * kLanes});
    }
  }
}

}  // namespace
}  // namespace foretune

#endif
