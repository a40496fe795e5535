// The non-zeros of a file, in the order in which the file has them, and the readers of files:
//
//   MatrixMarket        coordinate and array; general, symmetric and skew-symmetric; real, integer
//                       and pattern
//   AutoSparse's .csr   little-endian int32: rows, columns, non-zeros, row starts, columns of the
//                       non-zeros; then, in some files, a float for each non-zero
//   FROSTT's .tns       a line for each non-zero: its indices from 1, and its value; matrices and
//                       tensors of order 3
//
//   FORETUNE_TRY(const sparse::Coordinates read, sparse::read_coordinates(payload->bytes()));
//   FORETUNE_TRY(const sparse::Csr<float> matrix, sparse::csr_from<float>(read));
//
// The content decides about the form, not the name; a compressed file has to be inflated first
// (formats/gzip.h). Thread safety: free functions. Cost: memory of the non-zeros only; about 40 ns
// a non-zero of a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::sparse {

// The largest extent of a dimension. Descriptors and row starts take memory for each row and
// column, so that a file of a few bytes must not claim two thousand million of them.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 28U;

struct Coordinates {
  // Rows, columns and, for tensors, the third extent; 1 for matrices.
  std::array<std::int64_t, 3> extents{0, 0, 1};
  std::array<std::vector<std::int32_t>, 3> indices;  // from 0; the third is empty for matrices
  std::vector<double> values;                        // finite; empty for a pattern
  bool is_tensor = false;

  [[nodiscard]] std::size_t size() const { return indices[0].size(); }
  [[nodiscard]] bool is_pattern() const { return values.empty() && size() > 0; }
};

// Symmetric matrices are expanded. Entries that occur several times are kept as they are. Errors:
// kCorrupt and kInvalidArgument with the line of a text, kUnsupported for complex values, orders
// above 3 and extents above kMaxExtent.
Result<Coordinates> read_coordinates(std::span<const std::byte> bytes);

// Returns the value of a pattern's entry, which everyone draws alike whatever the order and the
// form of the file: uniform in [0.5, 1.5) with a random sign, a function of the place. The values
// of a symmetric pattern are not symmetric, so that a kernel that confuses rows and columns shows.
[[nodiscard]] double pattern_value(std::int64_t row, std::int64_t column, std::int64_t third);

}  // namespace foretune::sparse
