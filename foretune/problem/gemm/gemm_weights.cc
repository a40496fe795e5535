#include "foretune/problem/gemm/gemm_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/npy.h"

namespace foretune {
namespace {

using problem_internal::NpyMatrix;

constexpr std::array<std::string_view, 4> kWeightsValues{"zeros", "subnormals", "log2_largest",
                                                         "log2_smallest"};
// Lies below the log2 of every float.
constexpr double kNoMagnitude = -150;

float value_at(std::span<const std::byte> values, std::size_t index) {
  static_assert(std::endian::native == std::endian::little);
  float value = 0;
  std::memcpy(&value, values.data() + 4 * index, sizeof value);
  return value;
}

tl::unexpected<Error> not_finite(float value, std::size_t index) {
  return fail(ErrorCode::kInvalidArgument, "value ", index, " of the weights is ",
              std::isnan(value) ? "NaN" : "infinite");
}

// Returns the values of a file, whatever its shape.
Result<std::span<const std::byte>> values_of(std::span<const std::byte> bytes) {
  if (problem_internal::is_npy(bytes)) {
    FORETUNE_TRY(const NpyMatrix matrix, problem_internal::parse_npy(bytes));
    return matrix.values;
  }
  if (bytes.empty() || bytes.size() % 4 != 0) {
    return fail(ErrorCode::kCorrupt, "the file is neither NumPy's nor one of floats of 4 bytes (",
                bytes.size(), " bytes)");
  }
  return bytes;
}

// The rows of the matrix that the layout requires, and their length.
struct WeightsShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool operator==(const WeightsShape&) const = default;
};

WeightsShape shape_for(const GemmProblem& problem) {
  return b_by_columns(problem.layout()) ? WeightsShape{problem.n(), problem.k()}
                                        : WeightsShape{problem.k(), problem.n()};
}

tl::unexpected<Error> wrong_shape(const GemmProblem& problem, const NpyMatrix& matrix) {
  const WeightsShape wanted = shape_for(problem);
  const bool is_transposed = matrix.rows == wanted.columns && matrix.columns == wanted.rows;
  const bool by_columns = b_by_columns(problem.layout());
  return fail(ErrorCode::kMismatch, "the weights have the shape (", matrix.rows, ", ",
              matrix.columns, "), but B of n=", problem.n(), " k=", problem.k(),
              " layout=", to_string(problem.layout()), " has the shape (", wanted.rows, ", ",
              wanted.columns, ")",
              !is_transposed ? ""
              : by_columns   ? "; layout=rrr has the other"
                             : "; layout=rcr has the other");
}

// Returns the file as a matrix of the shape that the problem requires.
Result<NpyMatrix> matrix_for(const GemmProblem& problem, std::span<const std::byte> bytes) {
  const WeightsShape wanted = shape_for(problem);
  FORETUNE_TRY(const std::span<const std::byte> values, values_of(bytes));
  if (!problem_internal::is_npy(bytes)) {
    // Divides instead of multiplying, because k and n may be anything.
    if (values.size() / 4 / static_cast<std::uint64_t>(wanted.rows) !=
            static_cast<std::uint64_t>(wanted.columns) ||
        values.size() / 4 % static_cast<std::uint64_t>(wanted.rows) != 0) {
      return fail(ErrorCode::kMismatch, "the file has ", values.size() / 4,
                  " values and no header, B of n=", problem.n(), " k=", problem.k(),
                  " has n times k");
    }
    return NpyMatrix{wanted.rows, wanted.columns, false, values};
  }
  FORETUNE_TRY(const NpyMatrix matrix, problem_internal::parse_npy(bytes));
  if (WeightsShape{matrix.rows, matrix.columns} != wanted) {
    return wrong_shape(problem, matrix);
  }
  return matrix;
}

Status check_weights(const Problem& problem, std::span<const std::byte> bytes) {
  FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
  return matrix_for(gemm, bytes).map([](const NpyMatrix&) {});
}

Status describe_weights(std::span<const std::byte> bytes, std::span<double> out) {
  FORETUNE_TRY(const std::span<const std::byte> values, values_of(bytes));
  const std::size_t count = values.size() / 4;
  std::size_t zeros = 0;
  std::size_t subnormals = 0;
  float largest = 0;
  float smallest = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const float value = value_at(values, i);
    if (!std::isfinite(value)) {
      return not_finite(value, i);
    }
    const float magnitude = std::fabs(value);
    if (magnitude == 0) {
      ++zeros;
      continue;
    }
    subnormals += magnitude < std::numeric_limits<float>::min() ? 1U : 0U;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  const auto put = [&](GemmWeightsValue position, double value) {
    out[static_cast<std::size_t>(position)] = value;
  };
  const auto share = [&](std::size_t part) {
    return static_cast<double>(part) / static_cast<double>(count);
  };
  const bool has_any = zeros < count;
  put(GemmWeightsValue::kZeros, share(zeros));
  put(GemmWeightsValue::kSubnormals, share(subnormals));
  put(GemmWeightsValue::kLog2Largest,
      has_any ? std::log2(static_cast<double>(largest)) : kNoMagnitude);
  put(GemmWeightsValue::kLog2Smallest,
      has_any ? std::log2(static_cast<double>(smallest)) : kNoMagnitude);
  return {};
}

}  // namespace

const PayloadInfo& gemm_weights_info() {
  static constexpr PayloadInfo kInfo{.name = "gemm-weights",
                                     .version = 1,
                                     .values = kWeightsValues,
                                     .check = &check_weights,
                                     .describe = &describe_weights};
  return kInfo;
}

Status read_gemm_weights(const GemmProblem& problem, std::span<const std::byte> bytes,
                         std::span<float> out) {
  FORETUNE_TRY(const NpyMatrix matrix, matrix_for(problem, bytes));
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto columns = static_cast<std::size_t>(matrix.columns);
  FORETUNE_CHECK(out.size() == rows * columns);
  if (!matrix.by_columns) {
    std::memcpy(out.data(), matrix.values.data(), matrix.values.size());
  } else {
    // Copies in squares that stay in the cache.
    constexpr std::size_t kSide = 16;
    for (std::size_t i = 0; i < rows; i += kSide) {
      for (std::size_t j = 0; j < columns; j += kSide) {
        for (std::size_t r = i; r < std::min(i + kSide, rows); ++r) {
          for (std::size_t c = j; c < std::min(j + kSide, columns); ++c) {
            out[r * columns + c] = value_at(matrix.values, c * rows + r);
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(out[i])) {
      return not_finite(out[i], i);
    }
  }
  return {};
}

}  // namespace foretune
