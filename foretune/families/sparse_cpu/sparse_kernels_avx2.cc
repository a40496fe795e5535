#include "foretune/families/sparse_cpu/sparse_kernels.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "foretune/families/sparse_cpu/internal/kernel_table_inl.h"

namespace foretune::sparse_cpu {
namespace {

// A window into it begins with as many ones as lanes are to be used.
constexpr std::int32_t kLaneMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

struct Avx2F32 {
  using Value = float;
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kSums = 8;
  static constexpr int kBlockRegisters = 16;
  static Mask mask(int count) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLaneMasks + 8 - count));
  }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(Value value) { return _mm256_set1_ps(value); }
  static Vector load(const Value* from) { return _mm256_loadu_ps(from); }
  static Vector load(const Value* from, Mask mask) { return _mm256_maskload_ps(from, mask); }
  static void store(Value* to, Vector value) { _mm256_storeu_ps(to, value); }
  static void store(Value* to, Vector value, Mask mask) { _mm256_maskstore_ps(to, mask, value); }
  static void stream(Value* to, Vector value) { _mm256_stream_ps(to, value); }
  static void fence() { _mm_sfence(); }
  static Vector fma(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector gather(const Value* base, const std::int32_t* indices) {
    return gather(base, indices, mask(kLanes));
  }
  static Vector gather(const Value* base, const std::int32_t* indices, Mask mask) {
    return _mm256_mask_i32gather_ps(zero(), base, _mm256_maskload_epi32(indices, mask),
                                    _mm256_castsi256_ps(mask), 4);
  }
  static Vector gather_by_loads(const Value* base, const std::int32_t* i) {
    return _mm256_setr_ps(base[i[0]], base[i[1]], base[i[2]], base[i[3]], base[i[4]], base[i[5]],
                          base[i[6]], base[i[7]]);
  }
  static bool is_run(const std::int32_t* i) {
    const __m256i expected =
        _mm256_add_epi32(_mm256_set1_epi32(i[0]), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i found = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(i));
    return i[0] >= 0 && _mm256_movemask_epi8(_mm256_cmpeq_epi32(found, expected)) == -1;
  }
  // Fewer shuffles than four times sum().
  static void sum4(const Vector* sums, Value* to) {
    const __m256 ab =
        _mm256_add_ps(_mm256_unpacklo_ps(sums[0], sums[1]), _mm256_unpackhi_ps(sums[0], sums[1]));
    const __m256 cd =
        _mm256_add_ps(_mm256_unpacklo_ps(sums[2], sums[3]), _mm256_unpackhi_ps(sums[2], sums[3]));
    const __m256 all =
        _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
  }
  static Value sum(Vector value) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
};

struct Avx2F64 {
  using Value = double;
  using Vector = __m256d;
  using Mask = __m256i;
  static constexpr int kLanes = 4;
  static constexpr int kSums = 8;
  static constexpr int kBlockRegisters = 16;
  static Mask mask(int count) { return _mm256_cvtepi32_epi64(narrow_mask(count)); }
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector broadcast(Value value) { return _mm256_set1_pd(value); }
  static Vector load(const Value* from) { return _mm256_loadu_pd(from); }
  static Vector load(const Value* from, Mask mask) { return _mm256_maskload_pd(from, mask); }
  static void store(Value* to, Vector value) { _mm256_storeu_pd(to, value); }
  static void store(Value* to, Vector value, Mask mask) { _mm256_maskstore_pd(to, mask, value); }
  static void stream(Value* to, Vector value) { _mm256_stream_pd(to, value); }
  static void fence() { _mm_sfence(); }
  static Vector fma(Vector a, Vector b, Vector sum) { return _mm256_fmadd_pd(a, b, sum); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector gather(const Value* base, const std::int32_t* indices) {
    return _mm256_mask_i32gather_pd(zero(), base,
                                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(indices)),
                                    _mm256_castsi256_pd(mask(kLanes)), 8);
  }
  static Vector gather(const Value* base, const std::int32_t* indices, Mask mask) {
    // The even 32-bit halves of the mask are the mask of the indices.
    const __m256i halves =
        _mm256_permutevar8x32_epi32(mask, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    return _mm256_mask_i32gather_pd(zero(), base,
                                    _mm_maskload_epi32(indices, _mm256_castsi256_si128(halves)),
                                    _mm256_castsi256_pd(mask), 8);
  }
  static Vector gather_by_loads(const Value* base, const std::int32_t* i) {
    return _mm256_setr_pd(base[i[0]], base[i[1]], base[i[2]], base[i[3]]);
  }
  static bool is_run(const std::int32_t* i) {
    const __m128i expected = _mm_add_epi32(_mm_set1_epi32(i[0]), _mm_setr_epi32(0, 1, 2, 3));
    const __m128i found = _mm_loadu_si128(reinterpret_cast<const __m128i*>(i));
    return i[0] >= 0 && _mm_movemask_epi8(_mm_cmpeq_epi32(found, expected)) == 0xffff;
  }
  static void sum4(const Vector* sums, Value* to) {
    const __m256d ab = _mm256_hadd_pd(sums[0], sums[1]);
    const __m256d cd = _mm256_hadd_pd(sums[2], sums[3]);
    _mm256_storeu_pd(
        to, _mm256_add_pd(_mm256_blend_pd(ab, cd, 0xc), _mm256_permute2f128_pd(ab, cd, 0x21)));
  }
  static Value sum(Vector value) {
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(value), _mm256_extractf128_pd(value, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }

 private:
  static __m128i narrow_mask(int count) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(kLaneMasks + 8 - count));
  }
};

constexpr SparseKernels<float> kAvx2F32 = kernels_of<Avx2F32>();
constexpr SparseKernels<double> kAvx2F64 = kernels_of<Avx2F64>();

}  // namespace

SparseKernelTables avx2_sparse_kernels() { return {&kAvx2F32, &kAvx2F64}; }

}  // namespace foretune::sparse_cpu

#else

namespace foretune::sparse_cpu {

SparseKernelTables avx2_sparse_kernels() { return {}; }

}  // namespace foretune::sparse_cpu

#endif
