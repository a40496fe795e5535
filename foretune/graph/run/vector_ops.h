// The inner loops of everything in a network that is neither a product nor a convolution, in each
// instruction set.
//
//   const VectorOps& ops = vector_ops(best_cpu_isa());
//   ops.unary_of("tanh")(x, y, count, 0, 0);
//
// Functions read and write the elements that they are told and no others; results may lie where an
// operand does. Transcendental functions are accurate to about 2^-21 of the result.
//
// Thread safety: constant tables. Cost: a look-up by name walks a short list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/hardware/cpu.h"

namespace foretune::graph {

// The element-wise operations of networks (graph/ops.h) that have a loop, in the order of the
// tables.
inline constexpr std::array<std::string_view, 16> kUnaryLoops{
    "relu", "sigmoid",   "tanh", "erf",        "exp",      "sqrt", "abs",        "neg",
    "gelu", "gelu_tanh", "silu", "hard_swish", "softplus", "clip", "leaky_relu", "hard_sigmoid"};
inline constexpr std::array<std::string_view, 6> kBinaryLoops{"add", "sub", "mul",
                                                              "div", "max", "min"};

// How integers stand for real numbers: (q - zero) * scale.
struct Quantization {
  float scale = 1;
  std::int32_t zero = 0;
  bool operator==(const Quantization&) const = default;
};

// `p` and `q` are the numbers of the operation's attributes, in order.
using UnaryFunction = void (*)(const float* x, float* y, std::size_t count, float p, float q);
using BinaryFunction = void (*)(const float* a, const float* b, float* y, std::size_t count);

struct VectorOps {
  std::array<UnaryFunction, kUnaryLoops.size()> unary{};
  std::array<BinaryFunction, kBinaryLoops.size()> binary{};
  // Writes the largest of `count` rows, or `factor` times their sum, channel by channel.
  void (*max_rows)(const float* const* rows, std::size_t count, std::size_t channels,
                   float* y) = nullptr;
  // Writes the largest of `width` neighbouring points of a line for each of `count` windows, which
  // begin `step` points apart.
  void (*max_windows)(const float* line, std::size_t width, std::size_t step, std::size_t count,
                      std::size_t channels, float* y) = nullptr;
  void (*sum_rows)(const float* const* rows, std::size_t count, std::size_t channels, float factor,
                   float* y) = nullptr;
  // Writes `factor` times the sum of `rows` rows that follow each other.
  void (*sum_dense)(const float* x, std::size_t rows, std::size_t channels, float factor,
                    float* y) = nullptr;
  // The same of integers less their zero.
  void (*sum_dense_i8)(const std::int8_t* x, std::size_t rows, std::size_t channels,
                       std::int32_t zero, float factor, float* y) = nullptr;
  void (*softmax)(const float* x, float* y, std::size_t count) = nullptr;
  // Subtracts the mean and divides by the deviation; `scale` and `shift` may be null.
  void (*normalise)(const float* x, const float* scale, const float* shift, float epsilon, float* y,
                    std::size_t count) = nullptr;

  // Convert between f32 and the narrower types; both round to the nearest even, i8 saturates.
  void (*to_i8)(const float* x, std::int8_t* y, std::size_t count, float scale,
                std::int32_t zero) = nullptr;
  void (*from_i8)(const std::int8_t* x, float* y, std::size_t count, float scale,
                  std::int32_t zero) = nullptr;
  // Writes the nearest numbers that f16 has; `p` and `q` mean nothing.
  UnaryFunction round_f16 = nullptr;
  void (*to_bf16)(const float* x, std::uint16_t* y, std::size_t count) = nullptr;
  void (*from_bf16)(const std::uint16_t* x, float* y, std::size_t count) = nullptr;
  // Writes sums of integers as numbers, each times its channel's scale, and at least `floor`.
  void (*from_sums)(const std::int32_t* x, const float* scales, float* y, std::size_t rows,
                    std::size_t channels, float floor) = nullptr;
  void (*max_rows_i8)(const std::int8_t* const* rows, std::size_t count, std::size_t channels,
                      std::int8_t* y) = nullptr;
  // Writes the mean of two rows, of i8 and bf16 rounded.
  void (*mean_f32)(const float* a, const float* b, float* y, std::size_t count) = nullptr;
  void (*mean_i8)(const std::int8_t* a, const std::int8_t* b, std::int8_t* y,
                  std::size_t count) = nullptr;
  void (*mean_bf16)(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* y,
                    std::size_t count) = nullptr;

  // Return the loop of an operation, or nullptr when there is none.
  [[nodiscard]] UnaryFunction unary_of(std::string_view op) const;
  [[nodiscard]] BinaryFunction binary_of(std::string_view op) const;
};

// `isa` must be one that this CPU has; an instruction set that the build lacks is replaced by a
// narrower one.
const VectorOps& vector_ops(CpuIsa isa);

}  // namespace foretune::graph
