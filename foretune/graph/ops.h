// The operations of networks: one row each, with the meaning of its attributes, the shape that it
// makes, and a slow function that computes it in f64 (the oracle of everything faster).
//
//   operation    inputs                     integers
//   conv         x, weights [, bias]        stride_h, stride_w, pad_top, pad_left, pad_bottom,
//                                           pad_right, dilation_h, dilation_w, groups
//   linear       x [.., k], weights [n, k] [, bias]
//   matmul       a [.., m, k], b [.., k, n]
//   affine       x, scale, shift            one number of each for each channel (dimension 1)
//   relu, sigmoid, tanh, erf, exp, sqrt, abs, neg, gelu, gelu_tanh, silu, hard_swish, softplus
//                x
//   clip         x                          numbers: low, high
//   leaky_relu   x                          numbers: slope
//   hard_sigmoid x                          numbers: slope, offset
//   add, sub, mul, div, max, min, pow
//                a, b                       shapes are broadcast as NumPy does
//   max_pool     x                          kernel_h, kernel_w, then the first eight of conv, ceil
//   average_pool x                          the same, then count_padding
//   reduce_mean, reduce_sum, reduce_max
//                x                          keep, then the axes
//   softmax      x                          axis
//   layer_norm   x [, scale [, shift]]      axis; numbers: epsilon
//   local_norm   x                          size; numbers: alpha, beta, bias (across channels)
//   reshape      x                          the new shape
//   transpose    x                          the order of the dimensions
//   concat       at least one               axis
//   slice        x                          axis, begin, end, step
//   pad          x                          begin of each dimension, then end; numbers: value
//
// A new operation is a row in ops.inc and a function in ops/. Thread safety: constant tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

// An operand of a shape rule: its shape for one image, and its values where it is constant.
struct OperandShape {
  std::span<const std::int64_t> shape;
  bool is_constant = false;
};

// An operand of the slow functions.
struct OperandValues {
  std::span<const std::int64_t> shape;  // with the batch
  std::span<const double> values;
};

struct OpInfo {
  std::string_view name;
  std::size_t min_inputs = 1;
  std::size_t max_inputs = 1;
  // Numbers of attributes; kAnyNumber leaves the check to `shape`.
  std::size_t integers = 0;
  std::size_t numbers = 0;
  // Returns the shape of the result; of one image for shapes of one image, of a batch for shapes
  // with the batch. Errors: kInvalidArgument, one sentence about the operands.
  Result<Shape> (*shape)(std::span<const OperandShape> inputs,
                         const Attributes& attributes) = nullptr;
  // Computes the result. The operands have been checked by `shape`.
  void (*compute)(std::span<const OperandValues> inputs, const Attributes& attributes,
                  std::span<const std::int64_t> shape, std::span<double> result) = nullptr;
  // Returns the multiply-adds of the result; nullptr for operations that are not counted.
  double (*multiply_adds)(std::span<const OperandShape> inputs,
                          std::span<const std::int64_t> shape) = nullptr;
  // The function of an element-wise operation with one operand, or nullptr.
  double (*unary)(double x, const Attributes& attributes) = nullptr;
  // The function of an element-wise operation with two operands, or nullptr.
  double (*binary)(double a, double b) = nullptr;
};

inline constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);

[[nodiscard]] std::span<const OpInfo* const> all_ops();
// Returns nullptr for a name that no operation has.
[[nodiscard]] const OpInfo* find_op(std::string_view name);

// Returns true for a convolution or linear operation, the layers of a network.
[[nodiscard]] inline bool has_weights(const OpInfo& op) {
  return op.name == "conv" || op.name == "linear";
}

// The attributes of conv, and of pooling, where groups are 1.
struct Window {
  std::int64_t kernel_h = 1;
  std::int64_t kernel_w = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t pad_top = 0;
  std::int64_t pad_left = 0;
  std::int64_t pad_bottom = 0;
  std::int64_t pad_right = 0;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;
  std::int64_t groups = 1;
  bool ceil = false;           // pooling: a last window that begins inside counts
  bool count_padding = false;  // average_pool: points of the padding count as zeros

  // Return the extent of the result.
  [[nodiscard]] std::int64_t rows(std::int64_t rows_in) const;
  [[nodiscard]] std::int64_t columns(std::int64_t columns_in) const;
};
[[nodiscard]] Window conv_window(std::span<const std::int64_t> weights, const Attributes& conv);
[[nodiscard]] Window pool_window(const Attributes& pool);

// Returns the shape of two operands that are broadcast, or nothing where they do not fit.
Result<Shape> broadcast_shape(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace foretune::graph
