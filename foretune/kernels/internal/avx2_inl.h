// The vector operations of AVX2 for micro_kernel_inl.h, under the same rules.
// Thread safety: free functions.
#pragma once

// Defines nothing where the instructions are missing.
#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "foretune/kernels/internal/micro_kernel_inl.h"

namespace foretune {
namespace {

// A window of eight into this table is a mask with the wanted number of leading lanes.
alignas(64) constexpr int kMaskWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1,  // NOLINT
                                             0,  0,  0,  0,  0,  0,  0,  0};

struct Avx2 {
  using Vector = __m256;
  using Mask = __m256i;
  using Index = __m256i;
  static constexpr CpuIsa kIsa = CpuIsa::kAvx2;
  static constexpr KernelMath kMath = KernelMath::kF32;
  static constexpr int kLanes = 8;
  static constexpr bool kTailsAreSlow = false;

  FORETUNE_KERNEL_INLINE static Mask mask(int columns) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(kMaskWindow + kLanes - columns));
  }
  FORETUNE_KERNEL_INLINE static Vector zero() { return _mm256_setzero_ps(); }
  FORETUNE_KERNEL_INLINE static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  // Masked-out lanes are not accessed: no fault beyond the end.
  FORETUNE_KERNEL_INLINE static Vector load_part(const float* from, Mask mask) {
    return _mm256_maskload_ps(from, mask);
  }
  FORETUNE_KERNEL_INLINE static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  FORETUNE_KERNEL_INLINE static void store_part(float* to, Mask mask, Vector value) {
    _mm256_maskstore_ps(to, mask, value);
  }
  FORETUNE_KERNEL_INLINE static Index index(const std::int32_t* lanes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(lanes));
  }
  // Returns the lanes of a vector that the index names.
  FORETUNE_KERNEL_INLINE static Vector gather(Vector from, Index index) {
    return _mm256_permutevar8x32_ps(from, index);
  }
  FORETUNE_KERNEL_INLINE static Vector broadcast(const float* from) {
    return _mm256_broadcast_ss(from);
  }
  // The value is the second operand, which the instruction returns for a NaN.
  FORETUNE_KERNEL_INLINE static Vector at_least(Vector floor, Vector value) {
    return _mm256_max_ps(floor, value);
  }
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  FORETUNE_KERNEL_INLINE static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  FORETUNE_KERNEL_INLINE static Vector fma(Vector a, Vector b, Vector c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  // Uses the form of the instruction that overwrites the sum. GCC 12, left to itself, also uses the
  // forms that overwrite a factor, and a loop of several steps then spills sums to the stack.
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
  FORETUNE_KERNEL_INLINE static void accumulate_times(Vector& sum, Vector a, const float* b) {
    accumulate(sum, a, broadcast(b));
  }
  // Sets to[i] to the sum of the lanes of the i-th vector.
  FORETUNE_KERNEL_INLINE static void sum_four(Vector a, Vector b, Vector c, Vector d, float* to) {
    const Vector all = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
  }
};

struct Avx2Pairs : Avx2 {
  static constexpr KernelMath kMath = KernelMath::kI16Pairs;
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  }
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    sum =
        add(sum,
            _mm256_castsi256_ps(_mm256_madd_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b))));
  }
};

}  // namespace
}  // namespace foretune

#endif
