// The vector operations of AVX-512 for micro_kernel_inl.h, under the same rules.
// Thread safety: free functions.
#pragma once

// Defines nothing where the instructions are missing.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <immintrin.h>

#include "foretune/kernels/internal/micro_kernel_inl.h"

namespace foretune {
namespace {

struct Avx512 {
  using Vector = __m512;
  using Mask = __mmask16;
  using Index = __m512i;
  static constexpr CpuIsa kIsa = CpuIsa::kAvx512;
  static constexpr KernelMath kMath = KernelMath::kF32;
  static constexpr int kLanes = 16;
  static constexpr bool kTailsAreSlow = false;

  FORETUNE_KERNEL_INLINE static Mask mask(int columns) {
    return static_cast<Mask>((1U << static_cast<unsigned>(columns)) - 1U);
  }
  FORETUNE_KERNEL_INLINE static Vector zero() { return _mm512_setzero_ps(); }
  FORETUNE_KERNEL_INLINE static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  // Masked-out lanes are not accessed: no fault beyond the end.
  FORETUNE_KERNEL_INLINE static Vector load_part(const float* from, Mask mask) {
    return _mm512_maskz_loadu_ps(mask, from);
  }
  FORETUNE_KERNEL_INLINE static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  FORETUNE_KERNEL_INLINE static void store_part(float* to, Mask mask, Vector value) {
    _mm512_mask_storeu_ps(to, mask, value);
  }
  FORETUNE_KERNEL_INLINE static Index index(const std::int32_t* lanes) {
    return _mm512_loadu_si512(lanes);
  }
  // Returns the lanes of a vector that the index names.
  FORETUNE_KERNEL_INLINE static Vector gather(Vector from, Index index) {
    return _mm512_maskz_permutexvar_ps(0xffff, index, from);
  }
  FORETUNE_KERNEL_INLINE static Vector broadcast(const float* from) {
    return _mm512_set1_ps(*from);
  }
  // The value is the second operand, which the instruction returns for a NaN. The mask selects all
  // lanes, because the plain intrinsic passes on an undefined vector, about which GCC 12 warns.
  FORETUNE_KERNEL_INLINE static Vector at_least(Vector floor, Vector value) {
    return _mm512_mask_max_ps(value, 0xffff, floor, value);
  }
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  FORETUNE_KERNEL_INLINE static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  FORETUNE_KERNEL_INLINE static Vector fma(Vector a, Vector b, Vector c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  // Uses the form of the instruction that overwrites the sum. GCC 12, left to itself, also uses the
  // forms that overwrite a factor, and a loop of several steps then spills sums to the stack.
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
  FORETUNE_KERNEL_INLINE static void accumulate_times(Vector& sum, Vector a, const float* b) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(*b));
  }
  // Sets to[i] to the sum of the lanes of the i-th vector.
  FORETUNE_KERNEL_INLINE static void sum_four(Vector a, Vector b, Vector c, Vector d, float* to) {
    const Vector ab =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
        __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    const Vector cd =
        __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
        __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    // Four partial sums of each quad of lanes.
    const Vector all =
        __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
        __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    const __m256 eight = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                         __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
  }
};

}  // namespace
}  // namespace foretune

#endif
