// The part of every exported header that is the same for all models. Internal to the module.
// Thread safety: constant.
#pragma once

#include <string_view>

namespace foretune::export_cpp_internal {

// Arithmetic of the space's rules (64 bits, saturating, rounding towards minus infinity) and of the
// network's inputs: the same formulas as space/internal/expression_code.h and
// model/distilled/distilled_model.cc.
inline constexpr std::string_view kArithmetic = R"(namespace detail {

constexpr std::int64_t kLargest = INT64_C(9223372036854775807);
constexpr std::int64_t kSmallest = -kLargest - 1;

constexpr std::int64_t number(bool truth) { return truth ? 1 : 0; }
constexpr std::int64_t widen(std::int32_t value) { return value; }
constexpr std::int64_t lesser(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a < b ? b : a; }

// Overflows saturate.
constexpr std::int64_t add(std::int64_t a, std::int64_t b) {
  return b > 0 && a > kLargest - b ? kLargest : b < 0 && a < kSmallest - b ? kSmallest : a + b;
}
constexpr std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return b < 0 && a > kLargest + b ? kLargest : b > 0 && a < kSmallest + b ? kSmallest : a - b;
}
constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) {
    return 0;
  }
  if (a > 0) {
    return b > 0 ? (a > kLargest / b ? kLargest : a * b) : (b < kSmallest / a ? kSmallest : a * b);
  }
  return b > 0 ? (a < kSmallest / b ? kSmallest : a * b) : (b < kLargest / a ? kLargest : a * b);
}
// Towards minus infinity; by zero is zero.
constexpr std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    return 0;
  }
  if (b == -1) {
    return subtract(0, a);
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
constexpr std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) {
    return 0;
  }
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return add(divide(a, b), remainder(a, b) != 0 ? 1 : 0);
}
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return multiply(ceil_div(a, b), b);
}

constexpr std::int64_t kCount = INT64_C(2147483647);

// A size as the network's inputs take it.
constexpr std::int64_t size(std::int64_t value) { return lesser(larger(value, 1), kCount); }

// About 4096 log2(value), from 1.
constexpr std::int64_t log2(std::int64_t value) {
  int exponent = 0;
  while ((value >> exponent) > 1) {
    ++exponent;
  }
  const std::int64_t fraction =
      (exponent >= 12 ? value >> (exponent - 12) : value * (INT64_C(1) << (12 - exponent))) - 4096;
  return exponent * INT64_C(4096) + fraction + ((fraction * (4096 - fraction) * 1405) >> 24);
}
constexpr std::int64_t blocks(std::int64_t value, std::int64_t block) {
  return (value + block - 1) / block;
}
// 4096 times the share that `value` fills of whole blocks.
constexpr std::int64_t use(std::int64_t value, std::int64_t block) {
  return value * 4096 / (blocks(value, block) * block);
}
constexpr std::int64_t tiles(std::int64_t rows, std::int64_t block, std::int64_t columns,
                             std::int64_t other_block, std::int64_t repeat) {
  return lesser(kCount,
                lesser(kCount, blocks(rows, block) * blocks(columns, other_block)) * repeat);
}
// Shifts of negative numbers round down everywhere; C++17 only does not say so.
constexpr std::int16_t input(std::int64_t value, std::int64_t mean, std::int64_t scale) {
  return static_cast<std::int16_t>(
      lesser(4096, larger(-4096, divide((value - mean) * scale, 4096))));
}

template <std::size_t kInputs, std::size_t kOutputs>
constexpr std::array<std::int32_t, kOutputs> layer(
    const std::array<std::int16_t, kInputs>& inputs,
    const std::array<std::int16_t, kInputs * kOutputs>& weights,
    const std::array<std::int32_t, kOutputs>& bias) {
  std::array<std::int32_t, kOutputs> out{};
  for (std::size_t i = 0; i < kOutputs; ++i) {
    std::int32_t sum = bias[i];
    for (std::size_t k = 0; k < kInputs; ++k) {
      sum += static_cast<std::int32_t>(weights[i * kInputs + k]) * inputs[k];
    }
    out[i] = sum;
  }
  return out;
}

template <std::size_t kSize>
constexpr std::array<std::int16_t, kSize> hidden(const std::array<std::int32_t, kSize>& sums,
                                                 int shift) {
  std::array<std::int16_t, kSize> out{};
  for (std::size_t i = 0; i < kSize; ++i) {
    const std::int32_t value = sums[i] < 0 ? 0 : sums[i] >> shift;
    out[i] = static_cast<std::int16_t>(value > 8191 ? 8191 : value);
  }
  return out;
}

}  // namespace detail
)";

}  // namespace foretune::export_cpp_internal
