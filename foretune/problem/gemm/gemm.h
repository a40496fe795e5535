// The typed view of a GEMM problem: C[m x n] = alpha * A[m x k] * B[k x n] + beta * C, per batch.
//
//   FORETUNE_TRY(const GemmProblem gemm, GemmProblem::create({.m = 128, .n = 1536, .k = 7168}));
//   const Problem problem = gemm.to_problem();
//
// Thread safety: plain values. Cost: no allocation.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kGemmProblem{1};

// Stored in files: never renumber.
enum class GemmOperation : std::uint8_t {
  kMm = 0,         // C = A * B
  kAddmm = 1,      // C = A * B + bias, bias of length n added to every row
  kBmm = 2,        // batch independent products
  kAddmmRelu = 3,  // C = max(0, A * B + bias)
  kAddmmGelu = 4,  // C = gelu(A * B + bias)
};

// Stored in files: never renumber.
enum class DataType : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBf16 = 2,
  kF64 = 3,
  kTf32 = 4,
  kF8e4m3 = 5,
  kF8e5m2 = 6,
  kI8 = 7,
};

// Storage order of A, B and C: r is row-major, c is column-major. Stored in files.
enum class GemmLayout : std::uint8_t { kRcr = 0, kRrr = 1, kCrr = 2, kCcr = 3 };

// Constant weights: B stays the same from call to call, so a kernel may convert it once.
// Stored in files: never renumber.
enum class GemmWeights : std::uint8_t { kVarying = 0, kConstant = 1 };

// True when A is stored by columns; b_by_columns() is the same for B.
constexpr bool a_by_columns(GemmLayout layout) {
  return layout == GemmLayout::kCrr || layout == GemmLayout::kCcr;
}
constexpr bool b_by_columns(GemmLayout layout) {
  return layout == GemmLayout::kRcr || layout == GemmLayout::kCcr;
}

// True when the operation adds a bias.
constexpr bool has_bias(GemmOperation operation) {
  return operation == GemmOperation::kAddmm || operation == GemmOperation::kAddmmRelu ||
         operation == GemmOperation::kAddmmGelu;
}

// Returns the Gaussian error linear unit in its tanh form, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715
// x^3))) (Hendrycks and Gimpel: Gaussian Error Linear Units, 2016).
double gelu(double x);

std::string_view to_string(GemmOperation operation);
std::string_view to_string(DataType type);
std::string_view to_string(GemmLayout layout);
Result<GemmOperation> parse_gemm_operation(std::string_view text);
Result<DataType> parse_data_type(std::string_view text);
std::span<const std::string_view> gemm_operation_labels();
std::span<const std::string_view> data_type_labels();
std::span<const std::string_view> gemm_layout_labels();
std::span<const std::string_view> gemm_weights_labels();

// Returns the bytes of one element in memory.
double bytes_per_element(DataType type);

struct GemmSizes {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batch = 1;
  GemmOperation operation = GemmOperation::kMm;
  DataType dtype = DataType::kF32;
  GemmLayout layout = GemmLayout::kRrr;
  GemmWeights weights = GemmWeights::kVarying;
  Digest payload{};  // of the file that holds B (gemm_weights.h); zeros when B may be any matrix
  auto operator<=>(const GemmSizes&) const = default;
};

// Positions of the fields in a gemm Problem.
enum class GemmField : std::uint8_t {
  kOperation = 0,
  kM = 1,
  kN = 2,
  kK = 3,
  kBatch = 4,
  kDtype = 5,
  kLayout = 6,
  kWeights = 7,
};

class GemmProblem {
 public:
  // Refuses sizes below 1 or above 2^31 - 1, batch > 1 for anything but bmm, and a payload for
  // anything but a single product of f32.
  static Result<GemmProblem> create(const GemmSizes& sizes);
  // Refuses problems of another type.
  static Result<GemmProblem> from(const Problem& problem);
  [[nodiscard]] Problem to_problem() const;

  [[nodiscard]] std::int64_t m() const { return sizes_.m; }
  [[nodiscard]] std::int64_t n() const { return sizes_.n; }
  [[nodiscard]] std::int64_t k() const { return sizes_.k; }
  [[nodiscard]] std::int64_t batch() const { return sizes_.batch; }
  [[nodiscard]] GemmOperation operation() const { return sizes_.operation; }
  [[nodiscard]] DataType dtype() const { return sizes_.dtype; }
  [[nodiscard]] GemmLayout layout() const { return sizes_.layout; }
  [[nodiscard]] bool has_constant_weights() const {
    return sizes_.weights == GemmWeights::kConstant;
  }
  [[nodiscard]] const Digest& payload() const { return sizes_.payload; }
  [[nodiscard]] const GemmSizes& sizes() const { return sizes_; }

  // Returns 2 * m * n * k * batch.
  [[nodiscard]] double flops() const;
  // Counts A, B and C once each.
  [[nodiscard]] double bytes() const;

  auto operator<=>(const GemmProblem&) const = default;

 private:
  explicit GemmProblem(const GemmSizes& sizes) : sizes_(sizes) {}
  GemmSizes sizes_;
};

// Checks the rules of a gemm problem beyond the ranges of its fields; `fields` are in the order of
// GemmField.
Status check_gemm(std::span<const std::int64_t> fields);
// Checks the further rules of a gemm problem with a payload.
Status check_gemm_with_payload(std::span<const std::int64_t> fields);

}  // namespace foretune
