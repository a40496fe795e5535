// The operands of narrow groups in bf16 and i8, for group_inl.h. A file that includes this is
// compiled without contraction, because each step of an output is rounded.
// Thread safety: free functions.
#pragma once

// Defines nothing where the instructions are missing.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <cstdint>

#include "foretune/kernels/internal/avx512_output_inl.h"
#include "foretune/kernels/internal/group_inl.h"

namespace foretune {
namespace {

// Vectors of which a tail may be missing.
class WordGroups {
 public:
  using Vector = __m512;

  explicit WordGroups(const GroupCall& call)
      : call_(call),
        inputs_(Avx512::mask(call.input_channels)),
        outputs_(Avx512::mask(call.output_channels)) {}

 protected:
  FORETUNE_KERNEL_INLINE void prefetch(std::ptrdiff_t bytes) const {
    __builtin_prefetch(static_cast<const std::byte*>(call_.output) + bytes, 1, 3);
  }
  // Stores 32 bits of each channel.
  FORETUNE_KERNEL_INLINE void store_sums(std::ptrdiff_t place, Vector value) const {
    float* const to = static_cast<float*>(call_.output) + place;
    if (outputs_ == 0xffff) {
      Avx512::store(to, value);
    } else {
      Avx512::store_part(to, outputs_, value);
    }
  }
  FORETUNE_KERNEL_INLINE Vector sums_at(const void* from, std::ptrdiff_t place) const {
    return Avx512::load_part(static_cast<const float*>(from) + place, outputs_);
  }

  const GroupCall& call_;
  __mmask16 inputs_;
  __mmask16 outputs_;
};

class Bf16Groups : public WordGroups {
 public:
  using Element = std::uint16_t;

  explicit Bf16Groups(const GroupCall& call)
      : WordGroups(call), floor_(Avx512::broadcast(&call.floor)) {}

  // Written as assembler text, because compilers load and widen in two steps.
  FORETUNE_KERNEL_INLINE Vector input(const std::uint16_t* from) const {
    __m512i halves;
    asm("vpmovzxwd %1, %0%{%2%}%{z%}"
        : "=v"(halves)
        : "m"(*reinterpret_cast<const std::uint16_t(*)[16]>(from)), "Yk"(inputs_));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, halves, 16));
  }
  FORETUNE_KERNEL_INLINE Vector start(std::ptrdiff_t channel) const {
    return call_.bias == nullptr ? Avx512::zero() : sums_at(call_.bias, channel);
  }
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector value, Vector weight) {
    Avx512::accumulate(sum, value, weight);
  }
  FORETUNE_KERNEL_INLINE void prefetch_output(std::ptrdiff_t place) const {
    prefetch(place * (call_.stores_sums ? 4 : 2));
  }
  FORETUNE_KERNEL_INLINE void finish(Vector sum, std::ptrdiff_t place,
                                     std::ptrdiff_t /*channel*/) const {
    if (call_.stores_sums) {
      if (call_.addend != nullptr) {
        sum = Avx512::add(sum, sums_at(call_.addend, place));
      }
      store_sums(place, Avx512::at_least(floor_, sum));
      return;
    }
    if (call_.addend != nullptr) {
      sum = Avx512::add(
          sum, bf16_values(outputs_, static_cast<const std::uint16_t*>(call_.addend) + place));
    }
    store_bf16(static_cast<std::uint16_t*>(call_.output) + place, outputs_,
               bf16_of(Avx512::at_least(floor_, sum)));
  }

 private:
  Vector floor_;
};

// The bits of i32 in vectors of floats. `kIsFused`: products are added by one instruction (VNNI).
template <bool kIsFused>
class I8Groups : public WordGroups {
 public:
  using Element = std::int8_t;

  explicit I8Groups(const GroupCall& call)
      : WordGroups(call), zero_(_mm512_set1_epi32(call.input_zero)) {}

  FORETUNE_KERNEL_INLINE Vector input(const std::int8_t* from) const {
    __m512i bytes;
    asm("vpmovsxbd %1, %0%{%2%}%{z%}"
        : "=v"(bytes)
        : "m"(*reinterpret_cast<const std::int8_t(*)[16]>(from)), "Yk"(inputs_));
    return _mm512_castsi512_ps(_mm512_sub_epi32(bytes, zero_));
  }
  FORETUNE_KERNEL_INLINE Vector start(std::ptrdiff_t channel) const {
    return call_.bias == nullptr ? Avx512::zero() : sums_at(call_.bias, channel);
  }
  // Multiplies the lower halves; the upper half of a weight is 0.
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector value, Vector weight) {
    if constexpr (kIsFused) {
      asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(value), "v"(weight));
    } else {
      const __m512i product =
          _mm512_madd_epi16(_mm512_castps_si512(value), _mm512_castps_si512(weight));
      sum = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(sum), product));
    }
  }
  FORETUNE_KERNEL_INLINE void prefetch_output(std::ptrdiff_t place) const {
    prefetch(place * (call_.stores_sums ? 4 : 1));
  }
  FORETUNE_KERNEL_INLINE void finish(Vector bits, std::ptrdiff_t place,
                                     std::ptrdiff_t channel) const {
    __m512i sum = _mm512_castps_si512(bits);
    const bool relu = call_.floor == 0;
    if (call_.stores_sums) {
      if (call_.addend != nullptr) {
        sum = _mm512_add_epi32(sum, _mm512_castps_si512(sums_at(call_.addend, place)));
      }
      if (relu) {
        sum = _mm512_maskz_max_epi32(0xffff, sum, _mm512_setzero_si512());
      }
      store_sums(place, _mm512_castsi512_ps(sum));
      return;
    }
    Vector value = scaled_sums(sum, _mm512_maskz_loadu_ps(outputs_, call_.scales + channel));
    if (call_.addend != nullptr) {
      value = _mm512_add_ps(
          value, scaled_bytes(outputs_, static_cast<const std::int8_t*>(call_.addend) + place,
                              call_.addend_zero, call_.addend_scale));
    }
    const __m512i rounded = rounded_to_i32(value);
    store_bytes<1, true>(&rounded, static_cast<std::int8_t*>(call_.output) + place,
                         call_.output_zero, relu ? call_.output_zero : -128, outputs_);
  }

 private:
  __m512i zero_;
};

}  // namespace
}  // namespace foretune

#endif
