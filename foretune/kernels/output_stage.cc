#include "foretune/kernels/output_stage.h"

#include <cstring>

#include "foretune/kernels/kernels_isa.h"
#include "foretune/kernels/packing.h"

namespace foretune {
namespace {

template <class Value>
Value read(const void* from, std::ptrdiff_t index) {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * std::ptrdiff_t{sizeof value},
              sizeof value);
  return value;
}

template <class Value>
void write(void* to, std::ptrdiff_t index, Value value) {
  std::memcpy(static_cast<std::byte*>(to) + index * std::ptrdiff_t{sizeof value}, &value,
              sizeof value);
}

// Calls visit(position in the output, sum, column) for each element, row by row.
template <class Sum, class Visit>
void for_each(const OutputStageCall& call, const Visit& visit) {
  for (std::ptrdiff_t row = 0; row < call.rows; ++row) {
    for (std::ptrdiff_t column = 0; column < call.columns; ++column) {
      visit(row * call.output_stride + column,
            read<Sum>(call.sums, row * call.sums_stride + column), column);
    }
  }
}

void store_f32(const OutputStageCall& call) {
  for_each<float>(call, [&](std::ptrdiff_t at, float value, std::ptrdiff_t /*column*/) {
    value += call.addend == nullptr ? 0.0F : read<float>(call.addend, at);
    write(call.output, at, call.relu && value < 0 ? 0.0F : value);
  });
}

void store_bf16(const OutputStageCall& call) {
  for_each<float>(call, [&](std::ptrdiff_t at, float value, std::ptrdiff_t /*column*/) {
    if (call.addend != nullptr) {
      value += bf16_value(read<std::uint16_t>(call.addend, at));
    }
    value = call.relu && value < 0 ? 0.0F : value;
    write(call.output, at, bf16_bits(value));
  });
}

void store_i32(const OutputStageCall& call) {
  for_each<std::uint32_t>(call, [&](std::ptrdiff_t at, std::uint32_t sum, std::ptrdiff_t) {
    sum += call.addend == nullptr ? 0U : read<std::uint32_t>(call.addend, at);
    const auto value = static_cast<std::int32_t>(sum);
    write(call.output, at, call.relu && value < 0 ? 0 : value);
  });
}

void store_i8(const OutputStageCall& call) {
  // The clamped value, without the zero, is an integer below 2^9.
  const auto low = static_cast<float>(call.relu ? 0 : -128 - call.zero);
  const auto high = static_cast<float>(127 - call.zero);
  // Adding this leaves no bits behind the point, rounding to the nearest even.
  constexpr float kNoFraction = 0x1.8p23F;
  for_each<std::int32_t>(call, [&](std::ptrdiff_t at, std::int32_t sum, std::ptrdiff_t column) {
    float value = static_cast<float>(sum) * call.scales[column];
    if (call.addend != nullptr) {
      value += static_cast<float>(read<std::int8_t>(call.addend, at) - call.addend_zero) *
               call.addend_scale;
    }
    value = value > low ? value : low;
    value = value < high ? value : high;
    value = (value + kNoFraction) - kNoFraction;
    write(call.output, at, static_cast<std::int8_t>(static_cast<std::int32_t>(value) + call.zero));
  });
}

}  // namespace

OutputStage output_stage(CpuIsa isa, OutputType type) {
  if (isa == CpuIsa::kAvx512) {
    if (const OutputStage stage = avx512_output_stage(type); stage != nullptr) {
      return stage;
    }
  }
  switch (type) {
    case OutputType::kF32:
      return &store_f32;
    case OutputType::kBf16:
      return &store_bf16;
    case OutputType::kI32:
      return &store_i32;
    case OutputType::kI8:
      break;
  }
  return &store_i8;
}

}  // namespace foretune
