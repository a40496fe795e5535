// Conversions between float and the narrow formats of a GPU, as bits; and GELU.
#pragma once

#include <cmath>
#include <cstdint>

namespace foretune::fake_gpu {

// GELU by its formula with tanh.
inline double gelu_by_tanh(double x) {
  constexpr double kScale = 0.79788456080286535588;  // sqrt(2 / pi)
  return x / 2 * (1 + std::tanh(kScale * (x + 0.044715 * x * x * x)));
}

float f16_to_float(std::uint16_t bits);
float bf16_to_float(std::uint16_t bits);
float f8e4m3_to_float(std::uint8_t bits);

// To nearest, ties to even. F8 saturates at 448, as cuBLASLt's results do.
std::uint16_t float_to_f16(float value);
std::uint16_t float_to_bf16(float value);
std::uint8_t float_to_f8e4m3(float value);
// 10 bits of fraction, the others 0.
float round_to_tf32(float value);

}  // namespace foretune::fake_gpu
