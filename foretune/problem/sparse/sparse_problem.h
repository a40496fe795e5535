// The typed view of a sparse problem: one operation on a sparse matrix, or on a tensor of order 3.
//
//   sparse op=spmm rows=3072 columns=3072 nnz=119808 n=128 payload=...
//   sparse op=spmm n=128 payload=@conf5_0-4x4-18.mtx.gz    the file says the rest (payload_store.h)
//
// A is the sparse operand, with rows x columns and nnz non-zeros; n is the width of the dense ones.
// The payload is A's file (sparse_payload.h). Without one only the sizes are known, which is how
// measurements of matrices that nobody has are kept. The group is the original that the matrix was
// resampled from, so that no two relatives are split between training and test. Thread safety:
// plain values. Cost: no allocation, except in conversions to and from a Problem.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kSparseProblem{3};  // in files: never renumber

// Stored in files: never renumber.
enum class SparseOperation : std::uint8_t {
  kSpmv = 0,    // y = A x
  kSpmm = 1,    // C = A B, B and C with n columns
  kSddmm = 2,   // D = A * (B C) at the non-zeros of A, with an inner length of n
  kGespmv = 3,  // y = A x + c
  kGespmm = 4,  // D = A B + C
  kMmadd = 5,   // C = A + B, B and C dense
  kPlus2 = 6,   // C = A + B, all sparse with one pattern
  kPlus3 = 7,   // D = A + B + C, all sparse with one pattern
  kMttkrp =
      8,  // D = A(1) (B kr C) of a tensor rows x columns x depth, all dense ones with n columns
};

// Positions of the fields.
enum class SparseField : std::uint8_t {
  kOperation,
  kRows,
  kColumns,
  kDepth,
  kNonZeros,
  kWidth,
  kDtype,
  kOrigin,
};

struct SparseSizes {
  SparseOperation operation = SparseOperation::kSpmm;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;  // third extent of a tensor
  std::int64_t non_zeros = 0;
  std::int64_t width = 1;  // n
  DataType dtype = DataType::kF32;
  std::int64_t origin = 0;  // sparse_origin() of the file's name; 0 where unknown
  Digest payload;
  auto operator<=>(const SparseSizes&) const = default;
};

std::span<const std::string_view> sparse_operation_labels();
std::string_view to_string(SparseOperation operation);
// The rules of the fields beyond their ranges.
Status check_sparse(std::span<const std::int64_t> fields);

// Returns the number of the original of a matrix whose file has this name: the endings .gz, .mtx,
// .csr and .tns count for nothing, nor does _ROWSxCOLUMNS_NUMBER, which AutoSparse's names of
// resampled matrices end with.
[[nodiscard]] std::int64_t sparse_origin(std::string_view file_name);

class SparseProblem {
 public:
  // Errors: kInvalidArgument, with the field.
  static Result<SparseProblem> create(const SparseSizes& sizes);
  // Errors: kInvalidArgument for a problem of another type.
  static Result<SparseProblem> from(const Problem& problem);
  [[nodiscard]] Problem to_problem() const;

  [[nodiscard]] const SparseSizes& sizes() const { return sizes_; }
  [[nodiscard]] double flops() const;  // an addition or a multiplication each
  // Every operand read or written once; A with an index of 4 bytes for each column and depth of a
  // non-zero and 8 bytes a row.
  [[nodiscard]] double bytes() const;

 private:
  explicit SparseProblem(const SparseSizes& sizes) : sizes_(sizes) {}

  SparseSizes sizes_;
};

}  // namespace foretune
