#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <immintrin.h>

#include "foretune/kernels/internal/transpose_inl.h"

namespace foretune {
namespace {

struct Avx512Transpose {
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;

  static Mask mask(int columns) {
    return static_cast<Mask>((1U << static_cast<unsigned>(columns)) - 1U);
  }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static void store_part(float* to, Mask mask, Vector value) {
    _mm512_mask_storeu_ps(to, mask, value);
  }
  static Vector joined(__m256 low, __m256 high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  static __m256 two_quads(const float* low, const float* high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
  }
  static Vector load_quads(const float* const* rows) {
    return joined(two_quads(rows[0], rows[1]), two_quads(rows[2], rows[3]));
  }
  static Vector load_quads(const float* const* rows, int count) {
    const auto mask = static_cast<__mmask8>((1U << static_cast<unsigned>(count)) - 1U);
    const auto two = [&](const float* low, const float* high) {
      return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_maskz_loadu_ps(mask, low)),
                                  _mm_maskz_loadu_ps(mask, high), 1);
    };
    return joined(two(rows[0], rows[1]), two(rows[2], rows[3]));
  }
  static Vector low_pairs(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  }
  static Vector high_pairs(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15,
                                   31);
  }
  static Vector low_halves(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  }
  static Vector high_halves(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30,
                                   31);
  }
  static void transpose_quads(Vector (&v)[4]) {  // NOLINT(*-avoid-c-arrays)
    const Vector low01 = low_pairs(v[0], v[1]);
    const Vector high01 = high_pairs(v[0], v[1]);
    const Vector low23 = low_pairs(v[2], v[3]);
    const Vector high23 = high_pairs(v[2], v[3]);
    v[0] = low_halves(low01, low23);
    v[1] = high_halves(low01, low23);
    v[2] = low_halves(high01, high23);
    v[3] = high_halves(high01, high23);
  }
};

}  // namespace

TransposePanel avx512_transpose_panel() { return &PanelTranspose<Avx512Transpose>::run; }

}  // namespace foretune

#else

namespace foretune {

TransposePanel avx512_transpose_panel() { return transpose_panel_of(CpuIsa::kGeneric); }

}  // namespace foretune

#endif
