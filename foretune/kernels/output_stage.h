// The step from the sums of a tile to its output: adds a tensor, applies a ReLU and converts.
//
//   f32    y = max(floor, sum + addend)
//   bf16   the same, rounded to the nearest even
//   i32    the same in integers, modulo 2^32
//   i8     y = clamp(round(sum * scale + (addend - addend_zero) * addend_scale) + zero)
//
// The steps of i8 are single operations of f32, each rounded: the sum is converted, multiplied,
// added and rounded to the nearest even integer, so that every instruction set has the same
// results. It is clamped to -128..127, with a ReLU to zero..127; a scale that is no number gives
// the least value.
//
// Thread safety: free functions. Cost: no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune {

enum class OutputType : std::uint8_t { kF32, kBf16, kI32, kI8 };

constexpr std::ptrdiff_t bytes_of(OutputType type) {
  return type == OutputType::kI8 ? 1 : type == OutputType::kBf16 ? 2 : 4;
}

// Strides are in elements, between rows.
struct OutputStageCall {
  const float* sums = nullptr;  // f32, or the bits of i32 for integers; they may be the output
  std::ptrdiff_t sums_stride = 0;
  std::ptrdiff_t rows = 0;
  std::ptrdiff_t columns = 0;
  void* output = nullptr;
  std::ptrdiff_t output_stride = 0;  // also of the addend
  const void* addend = nullptr;      // of the output's type, or null
  bool relu = false;
  // Only for i8.
  const float* scales = nullptr;  // one for each column
  float addend_scale = 1;
  std::int32_t addend_zero = 0;
  std::int32_t zero = 0;
};

using OutputStage = void (*)(const OutputStageCall& call);

// Returns the function that uses the registers of `isa`, which this CPU must have.
OutputStage output_stage(CpuIsa isa, OutputType type);

}  // namespace foretune
