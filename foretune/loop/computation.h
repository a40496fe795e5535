// The computation of a loop nest: one value for every point of an output, reduced over further
// loops from one or two inputs, and then changed by a chain of steps:
//
//   out[...] = steps(reduce over the reduction variables of combine(input 0[...], input 1[...]))
//
// Tensors are f32 and addressed by sums of variables: a matrix product, batched or not, transposed
// or not, a convolution with stride, dilation, padding and groups, a reduction, a chain of
// elementwise operations, with bias, ReLU or a residual behind any of them.
//
//   Result<Computation> product = matmul({.m = 192, .n = 96, .k = 64, .epilogue = {.relu = true}});
//
// A schedule gives the order in which the points are visited (nest.h); the result is fixed here.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::loop {

inline constexpr std::size_t kMaxVars = 12;
inline constexpr std::size_t kMaxInputs = 5;
inline constexpr std::int64_t kMaxExtent = 1LL << 31;
// Elements of one tensor, limited by what 32-bit displacements of bytes can address on both sides.
inline constexpr std::int64_t kMaxElements = 1LL << 28;

// The number of values of each variable that some part of a nest covers.
using Extents = std::array<std::int64_t, kMaxVars>;

// A loop variable: 0 <= value < extent.
struct Var {
  std::string name;  // letters only
  std::int64_t extent = 1;
  bool is_reduction = false;
  bool operator==(const Var&) const = default;
};

// One dimension of a tensor: `size` places, `stride` elements apart, addressed by
// offset + sum of coefficients[v] * variable v. An input's value is 0 where its index is outside of
// [0, size): padding.
struct Dimension {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t offset = 0;
  std::vector<std::int64_t> coefficients;  // one per variable
  bool operator==(const Dimension&) const = default;
};

struct Tensor {
  std::string name;
  std::vector<Dimension> dimensions;
  bool operator==(const Tensor&) const = default;

  // Returns the number of elements from the first to the last place.
  [[nodiscard]] std::int64_t elements() const;
  // Returns the elements per step of a variable.
  [[nodiscard]] std::int64_t stride_of(std::size_t var) const;
  // Returns the place of index 0 of all variables; below 0 with padding.
  [[nodiscard]] std::int64_t origin() const;
};

enum class Op : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMax,  // as x86's MAXPS: the second operand where either is NaN
  kMin,  // as x86's MINPS: the second operand where either is NaN
};
std::string_view to_string(Op op);
float apply(Op op, float left, float right);
double apply(Op op, double left, double right);

// A step of the epilogue: value = op(value, input `input`), or with `constant` where there is no
// input. ReLU is a maximum with 0.
struct Step {
  Op op = Op::kMax;
  int input = -1;
  float constant = 0;
  bool operator==(const Step&) const = default;
};

struct Computation {
  std::string name;  // the name as a problem: "mm m=192 n=96 k=64"
  std::vector<Var> vars;
  Tensor output;
  std::vector<Tensor> inputs;  // the first one or two are combined, the others belong to steps
  int combined = 2;            // 1 or 2
  Op combine = Op::kMultiply;
  Op reduce = Op::kAdd;  // kAdd, kMax or kMin; unused without reduction variables
  std::vector<Step> steps;
  bool operator==(const Computation&) const = default;

  // Checks that every index is in its range, that only one point writes each output place, and that
  // all limits hold. The functions below return only computations that pass.
  [[nodiscard]] Status check() const;
  [[nodiscard]] bool has_reduction() const;
  // Returns the number of points of the whole nest.
  [[nodiscard]] double points() const;
  // Returns the number of floating-point operations: one for every combination, reduction and step.
  [[nodiscard]] double flops() const;
  // Returns the neutral element of `reduce`.
  [[nodiscard]] float neutral() const;
};

// Returns true when a point is inside of the tensor rather than in its padding, and sets `place`.
bool inside(const Tensor& tensor, const std::vector<std::int64_t>& point, std::int64_t* place);

// Optional steps after a product or a convolution. `bias` adds a vector along n (output channels).
struct Epilogue {
  bool bias = false;
  bool relu = false;
};

// C[b][m][n] = sum over k of A[b][m][k] * B[b][k][n], all by rows unless transposed. Variables are
// m, k, n in this order (LoopTune's start), with b before them for a batch.
struct MatmulSizes {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batch = 1;
  bool transpose_a = false;  // A is stored as [k][m]
  bool transpose_b = false;  // B is stored as [n][k]
  Epilogue epilogue = {};
};
Result<Computation> matmul(const MatmulSizes& sizes);

// out[b][o][y][x] = sum over c, r, s of in[b][g*C + c][y*stride + r*dilation - pad][...] *
// weight[o][c][r][s], NCHW and OIHW. Groups split both channels; groups == channels is depthwise.
// Variables are b, g, o, c, y, x, r, s without those of extent 1, but at least one.
struct ConvSizes {
  std::int64_t batch = 1;
  std::int64_t channels = 1;  // of the input, all groups
  std::int64_t out_channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 0;
  std::int64_t groups = 1;
  bool channels_last = false;  // NHWC and HWIO instead
  Epilogue epilogue = {};
};
Result<Computation> conv2d(const ConvSizes& sizes);

// out[r] = reduce over c of in[r][c]; with `of_columns` out[c] = reduce over r.
Result<Computation> reduction(std::int64_t rows, std::int64_t columns, Op reduce, bool of_columns);
// out[r][c] = steps(in[r][c]); steps with input 1, 2, ... read further tensors of that shape. Steps
// that are a named chain (chains.h) get its name.
Result<Computation> elementwise(std::int64_t rows, std::int64_t columns, std::vector<Step> steps);

}  // namespace foretune::loop
