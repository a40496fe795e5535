// The words other than f32 of AVX-512 for micro_kernel_inl.h, under the same rules.
// Thread safety: free functions.
#pragma once

// Defines nothing where the instructions are missing.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_output_inl.h"

namespace foretune {
namespace {

// Adds two products of bf16 at a time. Written as assembler text, the instructions need no flag
// that would let the compiler use them elsewhere in this file.
struct Avx512Bf16 : Avx512 {
  static constexpr KernelMath kMath = KernelMath::kBf16Pairs;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
  static constexpr OutputType kRoundsTo = OutputType::kBf16;
  // Rounds a row of a block. With kTail, the mask has the columns of the last vector.
  template <int kVectors, bool kTail>
  FORETUNE_KERNEL_INLINE static void store_rounded(const OutputStageCall& call, int row,
                                                   const Vector* sums, Mask mask) {
    const std::ptrdiff_t first = row * call.output_stride;
    const float floor = call.relu ? 0.0F : -__builtin_inff();
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Mask columns = kTail && j == kVectors - 1 ? mask : static_cast<Mask>(0xffff);
      const std::ptrdiff_t place = first + j * kLanes;
      Vector value = sums[j];
      if (call.addend != nullptr) {
        value = add(value,
                    bf16_values(columns, static_cast<const std::uint16_t*>(call.addend) + place));
      }
      store_bf16(static_cast<std::uint16_t*>(call.output) + place, columns,
                 bf16_of(at_least(Avx512::broadcast(&floor), value)));
    }
  }
};

struct Avx512Integers : Avx512 {
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
};

// Adds four products of an unsigned and a signed byte.
struct Avx512Vnni : Avx512Integers {
  static constexpr KernelMath kMath = KernelMath::kI8Quads;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

// The same with signed bytes, to which 128 is added.
struct Avx512Shifted : Avx512Vnni {
  static constexpr OutputType kRoundsTo = OutputType::kI8;
  template <int kVectors, bool kTail>
  FORETUNE_KERNEL_INLINE static void store_rounded(const OutputStageCall& call, int row,
                                                   const Vector* sums, Mask mask) {
    const std::ptrdiff_t first = row * call.output_stride;
    __m512i rounded[4];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Mask columns = kTail && j == kVectors - 1 ? mask : static_cast<Mask>(0xffff);
      Vector value = scaled_sums(_mm512_castps_si512(sums[j]),
                                 _mm512_maskz_loadu_ps(columns, call.scales + j * kLanes));
      if (call.addend != nullptr) {
        value = _mm512_add_ps(
            value,
            scaled_bytes(columns, static_cast<const std::int8_t*>(call.addend) + first + j * kLanes,
                         call.addend_zero, call.addend_scale));
      }
      rounded[j] = rounded_to_i32(value);
    }
    store_bytes<kVectors, kTail>(rounded, static_cast<std::int8_t*>(call.output) + first, call.zero,
                                 call.relu ? call.zero : -128, mask);
  }
  static constexpr KernelMath kMath = KernelMath::kI8Shifted;
  FORETUNE_KERNEL_INLINE static Vector broadcast(const float* from) {
    const __m512i bits = _mm512_castps_si512(Avx512::broadcast(from));
    return _mm512_castsi512_ps(
        _mm512_xor_si512(bits, _mm512_set1_epi32(static_cast<int>(0x80808080U))));
  }
};

struct Avx512Pairs : Avx512Integers {
  static constexpr KernelMath kMath = KernelMath::kI16Pairs;
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    sum =
        add(sum,
            _mm512_castsi512_ps(_mm512_madd_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b))));
  }
};

}  // namespace
}  // namespace foretune

#endif
