#include "foretune/problem/gemm/gemm.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/problem/internal/labels.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, 5> kOperations{"mm", "addmm", "bmm", "addmm_relu",
                                                      "addmm_gelu"};
constexpr std::array<std::string_view, 8> kDataTypes{"f32",  "f16",    "bf16",   "f64",
                                                     "tf32", "f8e4m3", "f8e5m2", "i8"};
constexpr std::array<std::string_view, 4> kLayouts{"rcr", "rrr", "crr", "ccr"};
constexpr std::array<std::string_view, 2> kWeights{"varying", "constant"};

Problem::Fields fields_of(const GemmSizes& sizes) {
  return {static_cast<std::int64_t>(sizes.operation),
          sizes.m,
          sizes.n,
          sizes.k,
          sizes.batch,
          static_cast<std::int64_t>(sizes.dtype),
          static_cast<std::int64_t>(sizes.layout),
          static_cast<std::int64_t>(sizes.weights)};
}

}  // namespace

std::span<const std::string_view> gemm_operation_labels() { return kOperations; }
std::span<const std::string_view> data_type_labels() { return kDataTypes; }
std::span<const std::string_view> gemm_layout_labels() { return kLayouts; }
std::span<const std::string_view> gemm_weights_labels() { return kWeights; }

std::string_view to_string(GemmOperation operation) {
  return kOperations[static_cast<std::size_t>(operation)];
}
std::string_view to_string(DataType type) { return kDataTypes[static_cast<std::size_t>(type)]; }
std::string_view to_string(GemmLayout layout) { return kLayouts[static_cast<std::size_t>(layout)]; }

Result<GemmOperation> parse_gemm_operation(std::string_view text) {
  return problem_internal::parse_label<GemmOperation>("a GEMM operation", kOperations, text);
}
Result<DataType> parse_data_type(std::string_view text) {
  return problem_internal::parse_label<DataType>("a data type", kDataTypes, text);
}
double gelu(double x) {
  const double z = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * z));  // 1 + tanh z = 2 / (1 + exp(-2 z))
}

double bytes_per_element(DataType type) {
  switch (type) {
    case DataType::kF64:
      return 8;
    case DataType::kF32:
    case DataType::kTf32:
      return 4;
    case DataType::kF16:
    case DataType::kBf16:
      return 2;
    case DataType::kF8e4m3:
    case DataType::kF8e5m2:
    case DataType::kI8:
      return 1;
  }
  return 4;
}

Status check_gemm(std::span<const std::int64_t> fields) {
  const std::int64_t batch = fields[static_cast<std::size_t>(GemmField::kBatch)];
  const std::int64_t operation = fields[static_cast<std::size_t>(GemmField::kOperation)];
  if (batch > 1 && operation != static_cast<std::int64_t>(GemmOperation::kBmm)) {
    return fail(ErrorCode::kInvalidArgument, "gemm: batch is ", batch,
                ", which only op=bmm can have");
  }
  return {};
}

Status check_gemm_with_payload(std::span<const std::int64_t> fields) {
  const std::int64_t batch = fields[static_cast<std::size_t>(GemmField::kBatch)];
  const auto dtype = static_cast<DataType>(fields[static_cast<std::size_t>(GemmField::kDtype)]);
  if (dtype != DataType::kF32 || batch != 1) {
    return fail(ErrorCode::kInvalidArgument, "gemm: weights from a file are those of one product ",
                "of f32, not of dtype=", to_string(dtype), " batch=", batch);
  }
  return {};
}

Result<GemmProblem> GemmProblem::create(const GemmSizes& sizes) {
  const GemmProblem gemm(sizes);
  FORETUNE_TRY(const Problem checked,
               Problem::create(kGemmProblem, fields_of(sizes), sizes.payload));
  static_cast<void>(checked);
  return gemm;
}

Result<GemmProblem> GemmProblem::from(const Problem& problem) {
  if (problem.type() != kGemmProblem) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.text(), "' is not a gemm problem");
  }
  const auto field = [&](GemmField index) {
    return problem.field(static_cast<std::size_t>(index));
  };
  return GemmProblem({.m = field(GemmField::kM),
                      .n = field(GemmField::kN),
                      .k = field(GemmField::kK),
                      .batch = field(GemmField::kBatch),
                      .operation = static_cast<GemmOperation>(field(GemmField::kOperation)),
                      .dtype = static_cast<DataType>(field(GemmField::kDtype)),
                      .layout = static_cast<GemmLayout>(field(GemmField::kLayout)),
                      .weights = static_cast<GemmWeights>(field(GemmField::kWeights)),
                      .payload = problem.payload()});
}

Problem GemmProblem::to_problem() const {
  auto problem = Problem::create(kGemmProblem, fields_of(sizes_), sizes_.payload);
  FORETUNE_CHECK(problem.has_value());
  return *std::move(problem);
}

double GemmProblem::flops() const {
  return 2.0 * static_cast<double>(sizes_.m) * static_cast<double>(sizes_.n) *
         static_cast<double>(sizes_.k) * static_cast<double>(sizes_.batch);
}

double GemmProblem::bytes() const {
  const auto m = static_cast<double>(sizes_.m);
  const auto n = static_cast<double>(sizes_.n);
  const auto k = static_cast<double>(sizes_.k);
  return (m * k + k * n + m * n) * static_cast<double>(sizes_.batch) *
         bytes_per_element(sizes_.dtype);
}

}  // namespace foretune
