#include "foretune/families/cpu_conv/conv_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "foretune/kernels/packing.h"

namespace foretune::cpu_conv {
namespace {

double in_f32(double value) { return static_cast<double>(static_cast<float>(value)); }

template <class Element>
void put(std::byte* bytes, std::size_t index, Element element) {
  std::memcpy(bytes + index * sizeof element, &element, sizeof element);
}

template <class Element>
Element take(const float* elements, std::size_t index) {
  Element element;
  std::memcpy(&element, reinterpret_cast<const std::byte*>(elements) + index * sizeof element,
              sizeof element);
  return element;
}

}  // namespace

OutputType operand_type(const ConvProblem& problem) {
  switch (problem.dtype()) {
    case DataType::kBf16:
      return OutputType::kBf16;
    case DataType::kI8:
      return OutputType::kI8;
    default:
      return OutputType::kF32;
  }
}

OutputType result_type(const ConvProblem& problem) {
  const OutputType type = operand_type(problem);
  return !problem.has_sums() ? type : type == OutputType::kI8 ? OutputType::kI32 : OutputType::kF32;
}

void draw_values(OutputType type, std::span<float> values, Rng& rng) {
  for (float& value : values) {
    switch (type) {
      case OutputType::kF32:
        value =
            static_cast<float>(static_cast<std::int32_t>(rng.next() >> 40U) - (1 << 23)) * 0x1p-23F;
        break;
      case OutputType::kBf16:
        value = static_cast<float>(2 * rng.between(0, 255) - 255) * 0x1p-8F;
        break;
      case OutputType::kI8:
        value = static_cast<float>(rng.between(-128, 127));
        break;
      case OutputType::kI32:
        value = static_cast<float>(rng.between(-(1 << 20), 1 << 20));
        break;
    }
  }
}

Result<AlignedBuffer> encode_values(OutputType type, std::span<const float> values, float zero) {
  const auto bytes = static_cast<std::size_t>(bytes_of(type));
  FORETUNE_TRY(AlignedBuffer buffer,
               AlignedBuffer::create((values.size() * bytes + sizeof(float) - 1) / sizeof(float)));
  auto* const to = reinterpret_cast<std::byte*>(buffer.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i] + zero;
    switch (type) {
      case OutputType::kF32:
        put(to, i, value);
        break;
      case OutputType::kBf16:
        put(to, i, bf16_bits(value));
        break;
      case OutputType::kI8:
        put(to, i, static_cast<std::int8_t>(value));
        break;
      case OutputType::kI32:
        put(to, i, static_cast<std::int32_t>(value));
        break;
    }
  }
  return buffer;
}

double decode_value(OutputType type, const float* elements, std::size_t index) {
  switch (type) {
    case OutputType::kBf16:
      return static_cast<double>(bf16_value(take<std::uint16_t>(elements, index)));
    case OutputType::kI8:
      return take<std::int8_t>(elements, index);
    case OutputType::kI32:
      return take<std::int32_t>(elements, index);
    case OutputType::kF32:
      break;
  }
  return static_cast<double>(elements[index]);
}

double quantized(double sum, std::size_t filter, double addend, bool has_addend, bool relu,
                 const ConvQuantization& quantization) {
  double value = in_f32(in_f32(sum) * static_cast<double>(quantization.scales[filter]));
  if (has_addend) {
    value = in_f32(value + in_f32((addend - quantization.addend_zero) *
                                  static_cast<double>(quantization.addend_scale)));
  }
  // To the nearest integer, the even one of two.
  const double below = std::floor(value);
  const double rest = value - below;
  const bool is_up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) != 0);
  return std::clamp((is_up ? below + 1 : below) + quantization.output_zero,
                    relu ? static_cast<double>(quantization.output_zero) : -128.0, 127.0);
}

}  // namespace foretune::cpu_conv
