#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "foretune/kernels/internal/transpose_inl.h"

namespace foretune {
namespace {

// A window of eight into this table is a mask with the wanted number of leading lanes.
alignas(64) constexpr int kMaskWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1,  // NOLINT
                                             0,  0,  0,  0,  0,  0,  0,  0};

struct Avx2Transpose {
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;

  static Mask mask(int columns) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(kMaskWindow + kLanes - columns));
  }
  static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  static void store_part(float* to, Mask mask, Vector value) {
    _mm256_maskstore_ps(to, mask, value);
  }
  static Vector load_quads(const float* const* rows) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows[0])),
                                _mm_loadu_ps(rows[1]), 1);
  }
  static Vector load_quads(const float* const* rows, int count) {
    const __m128i mask = _mm256_castsi256_si128(Avx2Transpose::mask(count));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_maskload_ps(rows[0], mask)),
                                _mm_maskload_ps(rows[1], mask), 1);
  }
  static void transpose_quads(Vector (&v)[4]) {  // NOLINT(*-avoid-c-arrays)
    const Vector low01 = _mm256_unpacklo_ps(v[0], v[1]);
    const Vector high01 = _mm256_unpackhi_ps(v[0], v[1]);
    const Vector low23 = _mm256_unpacklo_ps(v[2], v[3]);
    const Vector high23 = _mm256_unpackhi_ps(v[2], v[3]);
    v[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    v[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    v[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    v[3] = _mm256_shuffle_ps(high01, high23, 0xee);
  }
};

}  // namespace

TransposePanel avx2_transpose_panel() { return &PanelTranspose<Avx2Transpose>::run; }

}  // namespace foretune

#else

namespace foretune {

TransposePanel avx2_transpose_panel() { return transpose_panel_of(CpuIsa::kGeneric); }

}  // namespace foretune

#endif
