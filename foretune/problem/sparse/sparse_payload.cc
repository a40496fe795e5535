#include "foretune/problem/sparse/sparse_payload.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/sparse/csr.h"

namespace foretune {
namespace {

using sparse::Coordinates;
using sparse::MatrixDescription;

constexpr std::size_t position(SparseValue value) { return static_cast<std::size_t>(value); }

// The names of the numbers, in the order of SparseValue.
std::vector<std::string> make_names() {
  std::vector<std::string> names{"depth_mean",  "row_mean",         "row_deviation",  "row_longest",
                                 "column_mean", "column_deviation", "column_longest", "bandwidth",
                                 "distance",    "row_overlap",      "run_share"};
  for (std::size_t side = 0; side < sparse::kBlockSides; ++side) {
    names.push_back(concat("block_fill_", 2U << side));
  }
  for (const char* line : {"rows_", "columns_"}) {
    for (std::size_t bucket = 0; bucket < kSparseLengthShares; ++bucket) {
      names.push_back(concat(line, bucket == 0 ? 0U : 1U << (bucket - 1)));
    }
  }
  for (std::size_t cell = 0; cell < sparse::kDensityCells * sparse::kDensityCells; ++cell) {
    names.push_back(
        concat("density_", cell / sparse::kDensityCells, "_", cell % sparse::kDensityCells));
  }
  names.emplace_back("diagonal_share");
  FORETUNE_CHECK(names.size() == kSparseValues);
  return names;
}

std::span<const std::string_view> value_names() {
  static const std::vector<std::string> names = make_names();
  static const std::vector<std::string_view> views(names.begin(), names.end());
  return views;
}

// Returns the places of a tensor without their depths.
Coordinates fibres_of(const Coordinates& tensor) {
  Coordinates out;
  out.extents = {tensor.extents[0], tensor.extents[1], 1};
  out.indices = {tensor.indices[0], tensor.indices[1], {}};
  return out;
}

// Returns how often lines of these lengths occur, in fewer buckets than the description has.
void put_shares(const sparse::LineLengths& lengths, std::int64_t lines, std::span<double> out) {
  for (std::size_t bucket = 0; bucket < sparse::kLengthBuckets; ++bucket) {
    out[std::min(bucket, kSparseLengthShares - 1)] +=
        static_cast<double>(lengths.counts[bucket]) / static_cast<double>(lines);
  }
}

// Returns the number of distinct places.
Result<std::int64_t> distinct_places(const Coordinates& coordinates) {
  FORETUNE_TRY(const sparse::Csr<double> matrix, sparse::csr_from<double>(coordinates));
  return matrix.size();
}

Status describe_matrix(std::span<const std::byte> bytes, std::span<double> out) {
  FORETUNE_TRY(const Coordinates coordinates, sparse::read_coordinates(bytes));
  FORETUNE_TRY(
      const sparse::Csr<double> matrix,
      sparse::csr_from<double>(coordinates.is_tensor ? fibres_of(coordinates) : coordinates));
  double depth_mean = 1;
  if (coordinates.is_tensor && matrix.size() > 0) {
    FORETUNE_TRY(const std::int64_t places, distinct_places(coordinates));
    depth_mean = static_cast<double>(places) / static_cast<double>(matrix.size());
  }
  FORETUNE_TRY(const MatrixDescription description, sparse::describe(matrix.pattern()));
  sparse_values(description, depth_mean, out);
  return {};
}

Status check_matrix(const Problem& problem, std::span<const std::byte> bytes) {
  FORETUNE_TRY(const SparseProblem typed, SparseProblem::from(problem));
  return read_sparse_payload(typed, bytes).map([](const Coordinates&) {});
}

// Returns the fields that follow from the file and its name.
Result<std::string> fields_from_file(std::string_view name, std::span<const std::byte> bytes) {
  FORETUNE_TRY(const Coordinates coordinates, sparse::read_coordinates(bytes));
  FORETUNE_TRY(const std::int64_t places, distinct_places(coordinates));
  std::string out = concat("rows=", coordinates.extents[0], " columns=", coordinates.extents[1],
                           " nnz=", places, " origin=", sparse_origin(name));
  return coordinates.is_tensor ? concat(out, " depth=", coordinates.extents[2]) : out;
}

}  // namespace

const PayloadInfo& sparse_payload_info() {
  static const PayloadInfo info{.name = "sparse-matrix",
                                .version = 2,
                                .values = value_names(),
                                .check = &check_matrix,
                                .describe = &describe_matrix,
                                .fields = &fields_from_file};
  return info;
}

void sparse_values(const MatrixDescription& description, double depth_mean, std::span<double> out) {
  FORETUNE_CHECK(out.size() == kSparseValues);
  std::fill(out.begin(), out.end(), 0.0);
  const auto put = [&](SparseValue value, double number) { out[position(value)] = number; };
  const auto extent = static_cast<double>(std::max(description.rows, description.columns));
  put(SparseValue::kDepthMean, depth_mean);
  put(SparseValue::kRowMean, description.row_lengths.mean);
  put(SparseValue::kRowDeviation, description.row_lengths.deviation);
  put(SparseValue::kRowLongest, static_cast<double>(description.row_lengths.longest));
  put(SparseValue::kColumnMean, description.column_lengths.mean);
  put(SparseValue::kColumnDeviation, description.column_lengths.deviation);
  put(SparseValue::kColumnLongest, static_cast<double>(description.column_lengths.longest));
  put(SparseValue::kBandwidth, static_cast<double>(description.bandwidth) / extent);
  put(SparseValue::kDistance, description.mean_distance.value / extent);
  put(SparseValue::kRowOverlap, description.row_overlap.value);
  put(SparseValue::kRunShare, description.run_share.value);
  put(SparseValue::kDiagonalShare, description.diagonal_share.value);
  for (std::size_t side = 0; side < sparse::kBlockSides; ++side) {
    out[position(SparseValue::kBlockFill) + side] = description.block_fill[side].value;
  }
  put_shares(description.row_lengths, description.rows,
             out.subspan(position(SparseValue::kRowLengths), kSparseLengthShares));
  put_shares(description.column_lengths, description.columns,
             out.subspan(position(SparseValue::kColumnLengths), kSparseLengthShares));
  for (std::size_t cell = 0; cell < description.density.size() && description.size > 0; ++cell) {
    out[position(SparseValue::kDensity) + cell] =
        static_cast<double>(description.density[cell]) / static_cast<double>(description.size);
  }
}

Result<Coordinates> read_sparse_payload(const SparseProblem& problem,
                                        std::span<const std::byte> bytes) {
  FORETUNE_TRY(Coordinates coordinates, sparse::read_coordinates(bytes));
  const SparseSizes& sizes = problem.sizes();
  if (coordinates.is_tensor != (sizes.operation == SparseOperation::kMttkrp)) {
    return fail(ErrorCode::kMismatch, "the file holds a ",
                coordinates.is_tensor ? "tensor" : "matrix", ", which ", to_string(sizes.operation),
                " does not take");
  }
  FORETUNE_TRY(const std::int64_t places, distinct_places(coordinates));
  const std::array<std::int64_t, 4> wanted{sizes.rows, sizes.columns, sizes.depth, sizes.non_zeros};
  const std::array<std::int64_t, 4> found{coordinates.extents[0], coordinates.extents[1],
                                          coordinates.extents[2], places};
  constexpr std::array<std::string_view, 4> kNames{"rows", "columns", "depth", "nnz"};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != found[i]) {
      return fail(ErrorCode::kMismatch, "the file has ", kNames[i], "=", found[i], ", the problem ",
                  kNames[i], "=", wanted[i]);
    }
  }
  return coordinates;
}

}  // namespace foretune
