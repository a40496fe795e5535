// Rounds the median and the spread (relative interquartile range) of a row's time to 16 bits each.
// The time itself is an exact 32-bit float. Every row is added through these functions, so a
// journal, its sealed form and every export hold the same numbers.
//
// A code is a small float: 5 bits of exponent, 11 bits of mantissa, no sign. Rounded to nearest, it
// is within 0.025 % of the value. Code 0 stands for "none" or 0. Encoding a decoded value gives the
// same code again.
// Thread safety: free functions without state. Cost: a few bit operations.
#pragma once

#include <bit>
#include <cstdint>

namespace foretune {

namespace quantise_internal {

inline constexpr std::uint32_t kDroppedBits = 12;  // of the 23 bits of a float's mantissa
inline constexpr std::uint32_t kMantissaBits = 11;
inline constexpr std::uint32_t kExponentOfOne = 127;

// `lowest` is the exponent of code 0. Values below it give 0, values above the range give 65535.
[[nodiscard]] constexpr std::uint16_t encode(float value, std::uint32_t lowest) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (!(value > 0)) {  // also for NaN
    return 0;
  }
  const std::uint32_t rounded = (bits + (1U << (kDroppedBits - 1))) >> kDroppedBits;
  const std::uint32_t zero = lowest << kMantissaBits;
  if (rounded <= zero) {
    return 0;
  }
  return rounded - zero > 0xffffU ? std::uint16_t{0xffff}
                                  : static_cast<std::uint16_t>(rounded - zero);
}

[[nodiscard]] constexpr float decode(std::uint16_t code, std::uint32_t lowest) {
  if (code == 0) {
    return 0;
  }
  return std::bit_cast<float>((code + (lowest << kMantissaBits)) << kDroppedBits);
}

inline constexpr std::uint32_t kLowestRatio = kExponentOfOne - 8;    // 2^-8 to 2^24
inline constexpr std::uint32_t kLowestSpread = kExponentOfOne - 21;  // 2^-21 to 2^11

}  // namespace quantise_internal

// Encodes a median as its ratio to the time; 0 when either is 0. A ratio below 2^-8 cannot come
// from the same windows as the minimum, and is stored as the smallest ratio.
[[nodiscard]] constexpr std::uint16_t encode_median(float median_ns, float time_ns) {
  if (!(median_ns > 0) || !(time_ns > 0)) {
    return 0;
  }
  const std::uint16_t code =
      quantise_internal::encode(median_ns / time_ns, quantise_internal::kLowestRatio);
  return code == 0 ? std::uint16_t{1} : code;
}
[[nodiscard]] constexpr float decode_median(std::uint16_t code, float time_ns) {
  return time_ns * quantise_internal::decode(code, quantise_internal::kLowestRatio);
}

[[nodiscard]] constexpr std::uint16_t encode_spread(float spread) {
  return quantise_internal::encode(spread, quantise_internal::kLowestSpread);
}
[[nodiscard]] constexpr float decode_spread(std::uint16_t code) {
  return quantise_internal::decode(code, quantise_internal::kLowestSpread);
}

}  // namespace foretune
