#include "tests/fake_gpu/float_formats.h"

#include <bit>
#include <cmath>

namespace foretune::fake_gpu {
namespace {

// The bits without the sign of a finite value >= 0 in a format of this many bits of fraction whose
// smallest normal number is 2^least; values beyond its largest number continue the exponents.
unsigned encode(float value, int fraction, int least) {
  if (value == 0) {
    return 0;
  }
  int exponent = std::max(std::ilogb(value), least);
  // Exact: a power of two. Rounding may carry into the next exponent, which the addition below does
  // to the bits as well.
  const float units = std::nearbyint(std::ldexp(value, fraction - exponent));
  const unsigned whole = static_cast<unsigned>(units);
  // A normal number's leading 1 adds one to the exponent field.
  return (static_cast<unsigned>(exponent - least) << fraction) + whole;
}

unsigned sign_of(float value) { return std::bit_cast<std::uint32_t>(value) >> 31; }

}  // namespace

float f16_to_float(std::uint16_t bits) {
  const unsigned sign = static_cast<unsigned>(bits >> 15) << 31;
  const unsigned exponent = (bits >> 10) & 31U;
  const unsigned fraction = bits & 1023U;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float f8e4m3_to_float(std::uint8_t bits) {
  const unsigned exponent = (bits >> 3) & 15U;
  const unsigned fraction = bits & 7U;
  const float sign = (bits & 128) != 0 ? -1.0F : 1.0F;
  if (exponent == 15 && fraction == 7) {
    return std::bit_cast<float>(0x7fffffffU);
  }
  if (exponent == 0) {
    return sign * static_cast<float>(fraction) * 0x1p-9F;
  }
  return sign * std::bit_cast<float>((exponent + 120) << 23 | fraction << 20);
}

std::uint16_t float_to_f16(float value) {
  const unsigned sign = sign_of(value) << 15;
  if (std::isnan(value)) {
    return 0x7fff;
  }
  // Half way between the largest number and what would come after it.
  const unsigned bits = std::fabs(value) >= 65520 ? 0x7c00U : encode(std::fabs(value), 10, -14);
  return static_cast<std::uint16_t>(sign | bits);
}

std::uint16_t float_to_bf16(float value) {
  if (std::isnan(value)) {
    return 0x7fff;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

std::uint8_t float_to_f8e4m3(float value) {
  const unsigned sign = sign_of(value) << 7;
  if (std::isnan(value)) {
    return 0x7f;
  }
  const unsigned bits = std::fabs(value) >= 448 ? 0x7eU : encode(std::fabs(value), 3, -6);
  return static_cast<std::uint8_t>(sign | bits);
}

float round_to_tf32(float value) {
  if (!std::isfinite(value)) {
    return value;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfffU + ((bits >> 13) & 1U)) & ~0x1fffU);
}

}  // namespace foretune::fake_gpu
