#include "foretune/features/internal/sparse_matrix_columns.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "foretune/problem/sparse/sparse_payload.h"

namespace foretune::features_internal {
namespace {

constexpr FeatureInfo of_matrix(std::string_view name, std::string_view description) {
  return {.name = name,
          .kind = FeatureKind::kProblem,
          .description = description,
          .may_be_missing = true};
}

// Columns of the descriptor, and where it has them.
struct MatrixColumn {
  FeatureInfo info;
  std::size_t position;
};
constexpr std::size_t place(SparseValue value, std::size_t more = 0) {
  return static_cast<std::size_t>(value) + more;
}
constexpr std::array kMatrixColumns{
    MatrixColumn{of_matrix("row_deviation", "standard deviation of the rows' lengths"),
                 place(SparseValue::kRowDeviation)},
    MatrixColumn{of_matrix("row_longest", "length of the longest row"),
                 place(SparseValue::kRowLongest)},
    MatrixColumn{of_matrix("column_deviation", "standard deviation of the columns' lengths"),
                 place(SparseValue::kColumnDeviation)},
    MatrixColumn{of_matrix("bandwidth", "largest distance from the diagonal over the extent"),
                 place(SparseValue::kBandwidth)},
    MatrixColumn{of_matrix("distance", "mean distance from the diagonal over the extent"),
                 place(SparseValue::kDistance)},
    MatrixColumn{of_matrix("row_overlap", "share of non-zeros below another"),
                 place(SparseValue::kRowOverlap)},
    MatrixColumn{of_matrix("run_share", "share of non-zeros to the right of another"),
                 place(SparseValue::kRunShare)},
    MatrixColumn{of_matrix("fill_2", "share of non-zeros in the blocks of 2 x 2 that have any"),
                 place(SparseValue::kBlockFill, 0)},
    MatrixColumn{of_matrix("fill_4", "the same of blocks of 4 x 4"),
                 place(SparseValue::kBlockFill, 1)},
    MatrixColumn{of_matrix("fill_16", "the same of blocks of 16 x 16"),
                 place(SparseValue::kBlockFill, 3)},
    MatrixColumn{of_matrix("fill_64", "the same of blocks of 64 x 64"),
                 place(SparseValue::kBlockFill, 5)},
    MatrixColumn{of_matrix("rows_empty", "share of rows without a non-zero"),
                 place(SparseValue::kRowLengths, 0)},
    MatrixColumn{of_matrix("rows_of_1", "share of rows with one non-zero"),
                 place(SparseValue::kRowLengths, 1)},
    MatrixColumn{of_matrix("rows_of_2", "share of rows with two or three"),
                 place(SparseValue::kRowLengths, 2)},
    MatrixColumn{of_matrix("rows_of_4", "share of rows with four to seven"),
                 place(SparseValue::kRowLengths, 3)},
};

constexpr std::array kInfos = [] {
  std::array<FeatureInfo, kMatrixColumns.size()> infos{};
  for (std::size_t i = 0; i < infos.size(); ++i) {
    infos[i] = kMatrixColumns[i].info;
  }
  return infos;
}();

}  // namespace

std::span<const FeatureInfo> sparse_matrix_columns() { return kInfos; }

void sparse_matrix_row(const Problem& problem, std::span<double> out) {
  for (std::size_t i = 0; i < kMatrixColumns.size(); ++i) {
    out[i] = described_value(problem, kMatrixColumns[i].position);
  }
}

}  // namespace foretune::features_internal
