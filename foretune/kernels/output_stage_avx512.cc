// Defines the output stages that are worth registers of their own.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_output_inl.h"

namespace foretune {
namespace {

constexpr std::ptrdiff_t kLanes = Avx512::kLanes;

// The lanes of a vector that begin at `column`.
__mmask16 lanes_of(const OutputStageCall& call, std::ptrdiff_t column) {
  const std::ptrdiff_t left = call.columns - column;
  return left >= kLanes ? static_cast<__mmask16>(0xffff)
                        : Avx512::mask(left > 0 ? static_cast<int>(left) : 0);
}

// Returns 16 rounded values, without the zero.
__m512i rounded(const OutputStageCall& call, const float* sums, const std::int8_t* addend,
                std::ptrdiff_t column) {
  const __mmask16 mask = lanes_of(call, column);
  __m512 value = scaled_sums(_mm512_maskz_loadu_epi32(mask, sums + column),
                             _mm512_maskz_loadu_ps(mask, call.scales + column));
  if (addend != nullptr) {
    value = _mm512_add_ps(value,
                          scaled_bytes(mask, addend + column, call.addend_zero, call.addend_scale));
  }
  return rounded_to_i32(value);
}

void store_rows_i8(const OutputStageCall& call) {
  const std::int32_t low = call.relu ? call.zero : -128;
  for (std::ptrdiff_t row = 0; row < call.rows; ++row) {
    const float* const sums = call.sums + row * call.sums_stride;
    const std::int8_t* const addend =
        call.addend == nullptr
            ? nullptr
            : static_cast<const std::int8_t*>(call.addend) + row * call.output_stride;
    std::int8_t* const to = static_cast<std::int8_t*>(call.output) + row * call.output_stride;
    std::ptrdiff_t column = 0;
    for (; column + 4 * kLanes <= call.columns; column += 4 * kLanes) {
      __m512i four[4];  // NOLINT(*-avoid-c-arrays)
      _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
        four[i] = rounded(call, sums, addend, column + i * kLanes);
      }
      store_bytes<4, false>(four, to + column, call.zero, low, 0xffff);
    }
    for (; column < call.columns; column += kLanes) {
      const __m512i one = rounded(call, sums, addend, column);
      store_bytes<1, true>(&one, to + column, call.zero, low, lanes_of(call, column));
    }
  }
}

void store_rows_bf16(const OutputStageCall& call) {
  const __m512 floor = _mm512_set1_ps(call.relu ? 0.0F : -__builtin_inff());
  for (std::ptrdiff_t row = 0; row < call.rows; ++row) {
    const float* const sums = call.sums + row * call.sums_stride;
    const std::ptrdiff_t first = row * call.output_stride;
    for (std::ptrdiff_t column = 0; column < call.columns; column += kLanes) {
      const __mmask16 mask = lanes_of(call, column);
      __m512 value = _mm512_maskz_loadu_ps(mask, sums + column);
      if (call.addend != nullptr) {
        value = _mm512_add_ps(
            value,
            bf16_values(mask, static_cast<const std::uint16_t*>(call.addend) + first + column));
      }
      store_bf16(static_cast<std::uint16_t*>(call.output) + first + column, mask,
                 bf16_of(Avx512::at_least(floor, value)));
    }
  }
}

}  // namespace

OutputStage avx512_output_stage(OutputType type) {
  return type == OutputType::kI8     ? &store_rows_i8
         : type == OutputType::kBf16 ? &store_rows_bf16
                                     : nullptr;
}

}  // namespace foretune

#else

namespace foretune {

OutputStage avx512_output_stage(OutputType /*type*/) { return nullptr; }

}  // namespace foretune

#endif
