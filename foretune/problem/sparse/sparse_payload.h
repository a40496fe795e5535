// The payload of a sparse problem: the file of its matrix or tensor, in any form that
// sparse/coordinates.h reads, and the numbers that describe it for features. A tensor is described
// by its fibres: the matrix of rows and columns that have a non-zero at any depth.
// Thread safety: free functions. Cost: reading is about 40 ns a non-zero, describing 10 ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/problem/payload.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/describe.h"

namespace foretune {

// Positions of the numbers that describe a matrix (described_value()). Lengths of rows and columns
// are in non-zeros; shares are between 0 and 1.
enum class SparseValue : std::uint16_t {
  kDepthMean = 0,     // mean of the non-zeros of a fibre; 1 for matrices
  kRowMean = 1,       // mean length of a row
  kRowDeviation = 2,  // standard deviation of the lengths
  kRowLongest = 3,
  kColumnMean = 4,
  kColumnDeviation = 5,
  kColumnLongest = 6,
  kBandwidth = 7,       // largest distance from the diagonal, over the larger extent
  kDistance = 8,        // mean distance from the diagonal, over the larger extent
  kRowOverlap = 9,      // share of non-zeros below another
  kRunShare = 10,       // share of non-zeros to the right of another
  kBlockFill = 11,      // six shares, for blocks with sides 2, 4, ... 64
  kRowLengths = 17,     // 16 shares of rows: empty, 1, 2 to 3, 4 to 7, ... from 16384
  kColumnLengths = 33,  // 16 shares of columns
  kDensity = 49,        // 64 x 64 shares of the non-zeros, in each cell of a grid, line by line
  // Share of non-zeros to the right of and below another.
  kDiagonalShare = kDensity + sparse::kDensityCells * sparse::kDensityCells,
};
inline constexpr std::size_t kSparseLengthShares = 16;
inline constexpr std::size_t kSparseValues =
    static_cast<std::size_t>(SparseValue::kDiagonalShare) + 1;

const PayloadInfo& sparse_payload_info();

// Fills `out` with the numbers of a description, kSparseValues of them; products that hold a matrix
// in memory describe it so. `depth_mean` is 1 for matrices.
void sparse_values(const sparse::MatrixDescription& description, double depth_mean,
                   std::span<double> out);

// Reads the payload of a problem. Errors: those of sparse::read_coordinates(), and kMismatch for
// another matrix than the problem's fields state.
Result<sparse::Coordinates> read_sparse_payload(const SparseProblem& problem,
                                                std::span<const std::byte> bytes);

}  // namespace foretune
