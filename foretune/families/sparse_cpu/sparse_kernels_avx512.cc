#include "foretune/families/sparse_cpu/sparse_kernels.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <immintrin.h>

#include "foretune/families/sparse_cpu/internal/kernel_table_inl.h"

namespace foretune::sparse_cpu {
namespace {

// Gathers and halves name the lanes that they replace, because the plain intrinsics begin with an
// undefined vector, about which GCC 12 warns.
struct Avx512F32 {
  using Value = float;
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr int kSums = 16;
  static constexpr int kBlockRegisters = 32;
  static Mask mask(int count) {
    return static_cast<Mask>((1U << static_cast<unsigned>(count)) - 1U);
  }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(Value value) { return _mm512_set1_ps(value); }
  static Vector load(const Value* from) { return _mm512_loadu_ps(from); }
  static Vector load(const Value* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static void store(Value* to, Vector value) { _mm512_storeu_ps(to, value); }
  static void store(Value* to, Vector value, Mask mask) { _mm512_mask_storeu_ps(to, mask, value); }
  static void stream(Value* to, Vector value) { _mm512_stream_ps(to, value); }
  static void fence() { _mm_sfence(); }
  static Vector fma(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector gather(const Value* base, const std::int32_t* indices) {
    return _mm512_mask_i32gather_ps(zero(), 0xffff, _mm512_loadu_si512(indices), base, 4);
  }
  static Vector gather(const Value* base, const std::int32_t* indices, Mask mask) {
    return _mm512_mask_i32gather_ps(zero(), mask, _mm512_maskz_loadu_epi32(mask, indices), base, 4);
  }
  static Vector gather_by_loads(const Value* base, const std::int32_t* i) {
    return _mm512_setr_ps(base[i[0]], base[i[1]], base[i[2]], base[i[3]], base[i[4]], base[i[5]],
                          base[i[6]], base[i[7]], base[i[8]], base[i[9]], base[i[10]], base[i[11]],
                          base[i[12]], base[i[13]], base[i[14]], base[i[15]]);
  }
  static bool is_run(const std::int32_t* i) {
    const __m512i expected =
        _mm512_add_epi32(_mm512_set1_epi32(i[0]),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return i[0] >= 0 && _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(i), expected) == 0;
  }
  static __m256 halves(Vector value) {
    return _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, value, 0),
                         _mm512_maskz_extractf32x8_ps(0xff, value, 1));
  }
  // Fewer shuffles than four times sum().
  static void sum4(const Vector* sums, Value* to) {
    const __m256 a = halves(sums[0]);
    const __m256 b = halves(sums[1]);
    const __m256 c = halves(sums[2]);
    const __m256 d = halves(sums[3]);
    const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const __m256 all =
        _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
  }
  static Value sum(Vector value) {
    const __m256 half = halves(value);
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};

struct Avx512F64 {
  using Value = double;
  using Vector = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  static constexpr int kSums = 16;
  static constexpr int kBlockRegisters = 32;
  static Mask mask(int count) {
    return static_cast<Mask>((1U << static_cast<unsigned>(count)) - 1U);
  }
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector broadcast(Value value) { return _mm512_set1_pd(value); }
  static Vector load(const Value* from) { return _mm512_loadu_pd(from); }
  static Vector load(const Value* from, Mask mask) { return _mm512_maskz_loadu_pd(mask, from); }
  static void store(Value* to, Vector value) { _mm512_storeu_pd(to, value); }
  static void store(Value* to, Vector value, Mask mask) { _mm512_mask_storeu_pd(to, mask, value); }
  static void stream(Value* to, Vector value) { _mm512_stream_pd(to, value); }
  static void fence() { _mm_sfence(); }
  static Vector fma(Vector a, Vector b, Vector sum) { return _mm512_fmadd_pd(a, b, sum); }
  static Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  static Vector gather(const Value* base, const std::int32_t* indices) {
    return _mm512_mask_i32gather_pd(
        zero(), 0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices)), base, 8);
  }
  static Vector gather(const Value* base, const std::int32_t* indices, Mask mask) {
    return _mm512_mask_i32gather_pd(zero(), mask, _mm256_maskz_loadu_epi32(mask, indices), base, 8);
  }
  static Vector gather_by_loads(const Value* base, const std::int32_t* i) {
    return _mm512_setr_pd(base[i[0]], base[i[1]], base[i[2]], base[i[3]], base[i[4]], base[i[5]],
                          base[i[6]], base[i[7]]);
  }
  static bool is_run(const std::int32_t* i) {
    const __m256i expected =
        _mm256_add_epi32(_mm256_set1_epi32(i[0]), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i found = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(i));
    return i[0] >= 0 && _mm256_cmpneq_epi32_mask(found, expected) == 0;
  }
  static void sum4(const Vector* sums, Value* to) {
    for (int i = 0; i < 4; ++i) {
      to[i] = sum(sums[i]);
    }
  }
  static Value sum(Vector value) {
    const __m256d half = _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xf, value, 0),
                                       _mm512_maskz_extractf64x4_pd(0xf, value, 1));
    const __m128d quarter =
        _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(quarter, _mm_unpackhi_pd(quarter, quarter)));
  }
};

constexpr SparseKernels<float> kAvx512F32 = kernels_of<Avx512F32>();
constexpr SparseKernels<double> kAvx512F64 = kernels_of<Avx512F64>();

}  // namespace

SparseKernelTables avx512_sparse_kernels() { return {&kAvx512F32, &kAvx512F64}; }

}  // namespace foretune::sparse_cpu

#else

namespace foretune::sparse_cpu {

SparseKernelTables avx512_sparse_kernels() { return {}; }

}  // namespace foretune::sparse_cpu

#endif
