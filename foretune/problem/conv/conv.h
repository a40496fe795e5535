// The typed view of a convolution: one to three spatial dimensions, in groups, and its gradients.
//
//   FORETUNE_TRY(const ConvProblem conv,
//                ConvProblem::create({.n = 16, .c = 64, .k = 128, .hi = 28, .wi = 28, .y = 3,
//                                     .x = 3, .pad_h = 1, .pad_w = 1}));
//   conv.ho();  // 28
//
// Sizes carry the names that are usual for convolutions: n images of c channels and di x hi x wi
// points, k filters of (c / g) x z x y x x weights, g groups. A convolution of two dimensions has
// di = z = 1. Both gradients are described by the sizes of the forward pass they belong to.
// Thread safety: plain values. Cost: no allocation, except in conversions to and from a Problem.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kConvProblem{2};

// Stored in files: never renumber.
enum class ConvOperation : std::uint8_t {
  kForward = 0,         // output from input and weights
  kBackwardData = 1,    // gradient of the input from that of the output and the weights
  kBackwardWeight = 2,  // gradient of the weights from that of the output and the input
};

// Stored in files: never renumber.
enum class ConvLayout : std::uint8_t {
  kChannelsLast = 0,   // n, points, g, c: "nhwgc" with weights g, k, points, c
  kChannelsFirst = 1,  // n, g, c, points: "ngchw" with weights g, k, c, points
};

// Says whether the weights stay the same from call to call, so that they may be packed once. Stored
// in files: never renumber.
enum class ConvWeights : std::uint8_t { kVarying = 0, kConstant = 1 };

// The step that a forward pass applies to its sums. Stored in files: never renumber.
enum class ConvEpilogue : std::uint8_t {
  kNone = 0,
  kBias = 1,         // + bias of the filter
  kBiasRelu = 2,     // max(0, + bias)
  kBiasAddRelu = 3,  // max(0, + bias + a tensor of the output's shape)
};

// The type of the tensor that is computed, and of one that an epilogue adds. Stored in files: never
// renumber.
enum class ConvOutput : std::uint8_t {
  kSame = 0,  // the problem's type; integers are scaled, rounded and saturated
  kSums = 1,  // the type of the sums: i32 for i8, f32 for other types narrower than that
};

std::string_view to_string(ConvOperation operation);
std::string_view to_string(ConvLayout layout);
Result<ConvOperation> parse_conv_operation(std::string_view text);
std::span<const std::string_view> conv_operation_labels();
std::span<const std::string_view> conv_layout_labels();
std::span<const std::string_view> conv_weights_labels();
std::span<const std::string_view> conv_epilogue_labels();
std::span<const std::string_view> conv_output_labels();

struct ConvSizes {
  ConvOperation operation = ConvOperation::kForward;
  std::int64_t n = 1;
  std::int64_t c = 1;  // of all groups
  std::int64_t k = 1;  // of all groups
  std::int64_t g = 1;
  std::int64_t di = 1;
  std::int64_t hi = 1;
  std::int64_t wi = 1;
  std::int64_t z = 1;
  std::int64_t y = 1;
  std::int64_t x = 1;
  std::int64_t stride_d = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t pad_d = 0;  // on either side
  std::int64_t pad_h = 0;
  std::int64_t pad_w = 0;
  std::int64_t dilation_d = 1;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;
  DataType dtype = DataType::kF32;
  ConvLayout layout = ConvLayout::kChannelsLast;
  ConvWeights weights = ConvWeights::kVarying;
  ConvEpilogue epilogue = ConvEpilogue::kNone;
  ConvOutput out = ConvOutput::kSame;
  // A forward pass with channels last may compute less: the row at `skip_rows_at` of every
  // `skip_rows` rows of the output is left as it is, and columns alike; the point at `skip_taps_at`
  // of every `skip_taps` points of a filter counts as 0. 0: nothing is left out.
  std::int64_t skip_rows = 0;
  std::int64_t skip_rows_at = 0;
  std::int64_t skip_columns = 0;
  std::int64_t skip_columns_at = 0;
  std::int64_t skip_taps = 0;
  std::int64_t skip_taps_at = 0;
  auto operator<=>(const ConvSizes&) const = default;
};

// Positions of the fields in a conv Problem.
enum class ConvField : std::uint8_t {
  kOperation,
  kN,
  kC,
  kK,
  kG,
  kDi,
  kHi,
  kWi,
  kZ,
  kY,
  kX,
  kStrideD,
  kStrideH,
  kStrideW,
  kPadD,
  kPadH,
  kPadW,
  kDilationD,
  kDilationH,
  kDilationW,
  kDtype,
  kLayout,
  kWeights,
  kEpilogue,
  kOut,
  kSkipRows,
  kSkipRowsAt,
  kSkipColumns,
  kSkipColumnsAt,
  kSkipTaps,
  kSkipTapsAt,
};

// The matrix product that equals a convolution; there is one per group.
struct ImplicitGemm {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t groups = 1;
  auto operator<=>(const ImplicitGemm&) const = default;
};

class ConvProblem {
 public:
  // Refuses sizes out of range, c or k that g does not divide, a filter that does not fit the
  // padded input, tensors of more than 2^53 elements, an epilogue or constant weights of an
  // operation that has none, and sums as the output of a type that is as wide as its sums.
  static Result<ConvProblem> create(const ConvSizes& sizes);
  // Refuses problems of another type.
  static Result<ConvProblem> from(const Problem& problem);
  [[nodiscard]] Problem to_problem() const;

  [[nodiscard]] const ConvSizes& sizes() const { return sizes_; }
  [[nodiscard]] ConvOperation operation() const { return sizes_.operation; }
  [[nodiscard]] DataType dtype() const { return sizes_.dtype; }
  [[nodiscard]] ConvLayout layout() const { return sizes_.layout; }
  [[nodiscard]] ConvEpilogue epilogue() const { return sizes_.epilogue; }
  // Returns true when the result is of another type than the problem.
  [[nodiscard]] bool has_sums() const { return sizes_.out == ConvOutput::kSums; }
  [[nodiscard]] bool has_constant_weights() const {
    return sizes_.weights == ConvWeights::kConstant;
  }
  // Returns true when rows, columns or taps are left out.
  [[nodiscard]] bool skips() const {
    return sizes_.skip_rows + sizes_.skip_columns + sizes_.skip_taps > 0;
  }
  // Returns true when the output's points of this row and column are left as they are.
  [[nodiscard]] bool skips_point(std::int64_t row, std::int64_t column) const {
    return is_skipped(row, sizes_.skip_rows, sizes_.skip_rows_at) ||
           is_skipped(column, sizes_.skip_columns, sizes_.skip_columns_at);
  }
  // Returns true when a point of the filter, counted by depth, row and column, counts as 0.
  [[nodiscard]] bool skips_tap(std::int64_t point) const {
    return is_skipped(point, sizes_.skip_taps, sizes_.skip_taps_at);
  }
  static constexpr bool is_skipped(std::int64_t index, std::int64_t period, std::int64_t at) {
    return period > 0 && index % period == at;
  }
  [[nodiscard]] bool is_3d() const { return sizes_.di > 1 || sizes_.z > 1; }

  // Sizes of the output.
  [[nodiscard]] std::int64_t depth_out() const;
  [[nodiscard]] std::int64_t ho() const;
  [[nodiscard]] std::int64_t wo() const;

  [[nodiscard]] std::int64_t input_elements() const;
  [[nodiscard]] std::int64_t weight_elements() const;
  [[nodiscard]] std::int64_t output_elements() const;

  // Forward: output points x filters, summed over a filter's weights. The input's gradient: input
  // points x channels, summed over filters and their points (with a stride above 1 only part of
  // those products is not 0). The weights' gradient: filters x weights, summed over output points.
  [[nodiscard]] ImplicitGemm implicit_gemm() const;

  // Counts 2 per multiply-add of the sizes, without those left out; all three operations have the
  // same number.
  [[nodiscard]] double flops() const;
  // Counts input, weights and output once each, and the tensor that an epilogue adds.
  [[nodiscard]] double bytes() const;

  auto operator<=>(const ConvProblem&) const = default;

 private:
  explicit ConvProblem(const ConvSizes& sizes) : sizes_(sizes) {}
  ConvSizes sizes_;
};

// Checks the rules of a conv problem beyond the ranges of its fields; `fields` are in the order of
// ConvField.
Status check_conv(std::span<const std::int64_t> fields);

}  // namespace foretune
