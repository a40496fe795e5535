// Describes the pattern of a sparse matrix by numbers that features can be made of.
//
//   const MatrixDescription exact = describe(matrix.pattern());
//   const MatrixDescription fast = describe_sampled(matrix.pattern(), seed);
//
// The exact form looks at every non-zero. The sampled one counts the rows and the columns exactly,
// and the rest in every few strips of 64 rows; what is estimated has its standard error beside it.
// Thread safety: free functions. Cost: memory for rows and columns only, 10 bytes a column; exact
// at most 10 ns a non-zero, sampled at most 3 ns (bench/sparse_description.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/sparse/csr.h"

namespace foretune::sparse {

inline constexpr std::size_t kBlockSides = 6;  // 2, 4, 8, 16, 32, 64
inline constexpr std::size_t kLengthBuckets = 32;
inline constexpr std::size_t kDensityCells = 64;  // along each axis

// A share or mean, and its standard error: 0 where it was counted in full.
struct Estimate {
  double value = 0;
  double error = 0;
};

struct LineLengths {
  // Lines by length: bucket 0 is empty lines, bucket b lengths from 2^(b-1) to 2^b - 1, and the
  // last bucket all longer ones.
  std::array<std::int64_t, kLengthBuckets> counts{};
  std::int64_t longest = 0;
  double mean = 0;
  double deviation = 0;
};

struct MatrixDescription {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t size = 0;
  LineLengths row_lengths;
  LineLengths column_lengths;
  // Share of non-zeros among the elements of the blocks that have any, for aligned square blocks
  // with sides 2, 4, ... 64.
  std::array<Estimate, kBlockSides> block_fill{};
  std::int64_t bandwidth = 0;  // largest |column - row|
  Estimate mean_distance;      // mean of |column - row|
  Estimate row_overlap;        // share of non-zeros below a non-zero
  Estimate run_share;          // share of non-zeros to the right of a non-zero
  Estimate diagonal_share;     // share of non-zeros to the right of and below a non-zero
  // Non-zeros in each cell of a grid over the matrix: row r, column c belongs to the cell in line
  // 64 r / rows and column 64 c / columns, both rounded down. Coarser grids are its sums.
  std::array<float, kDensityCells * kDensityCells> density{};
  double density_error = 0;  // sum of the cells' standard errors over the non-zeros
  double looked_at = 1;      // share of the strips that were looked at in full
};

// Errors: kUnsupported where memory is lacking.
Result<MatrixDescription> describe(const PatternView& pattern);
// Matrices below 16384 rows are described in full. The strips are drawn by the seed. Errors: those
// of describe().
Result<MatrixDescription> describe_sampled(const PatternView& pattern, std::uint64_t seed);

// Returns the density on a grid of `cells` x `cells`, a power of two up to 64, by sums over
// `density`: non-zeros over elements of each cell's share of the matrix.
[[nodiscard]] float density_at(const MatrixDescription& description, std::size_t cells,
                               std::size_t line, std::size_t column);

}  // namespace foretune::sparse
