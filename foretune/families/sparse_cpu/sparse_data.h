// Operands, output and reference of one sparse product, and the check of an output.
//
// A comes from the problem's payload. Dense operands are uniform in [-1, 1), stored by rows:
//
//   spmv    y = A x          x has `columns` values
//   gespmv  y = A x + c      c has `rows` values
//   spmm    C = A B          B has `columns` rows of n values
//   gespmm  D = A B + C      C has `rows` rows
//   sddmm   D = A * (B C)    B has `rows` rows of n values, and C `columns` rows: each column of
//   the
//                            right factor is contiguous, as in the products of graph networks
//   mmadd   C = A + B        B has `rows` rows of `columns` values
//   plus2   C = A + B        B and C are the values of matrices with the pattern of A
//   plus3   D = A + B + C    likewise
//   mttkrp  D = A (B kr C)   D[i][r] = sum of a[i][j][k] B[j][r] C[k][r]; B has `columns` rows of n
//                            values, C `depth` rows
//
// Every element of an output is compared with a sum in double precision. It may be off by
//
//   (t + 3) u * sum |terms|        u = 2^-24 or 2^-53, t the number of terms
//
// the bound of Higham (2002, section 3.1) for any order of summation, with two more roundings for
// the scaling of sddmm and the second factor of mttkrp, and for f64 twice that, since the reference
// is rounded as well.
// Thread safety: belongs to one thread. Cost: the first verify() computes the reference and keeps
// it, in 16 bytes an element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/array.h"
#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/csr.h"

namespace foretune::sparse_cpu {

// The part that does not depend on the type of the values.
class SparseData : public ProblemData {
 public:
  [[nodiscard]] const SparseProblem& problem() const { return problem_; }

 protected:
  explicit SparseData(const SparseProblem& problem) : problem_(problem) {}

 private:
  SparseProblem problem_;
};

template <class T>
class TypedSparseData final : public SparseData {
 public:
  static constexpr bool kIsDouble = sizeof(T) == 8;

  // Errors: kUnsupported where memory is lacking; those of sparse::csr_from().
  static Result<std::unique_ptr<TypedSparseData>> create(const SparseProblem& problem,
                                                         const sparse::Coordinates& coordinates,
                                                         std::uint64_t seed);

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

  // A; the matrix of csr_from() for a tensor.
  [[nodiscard]] const sparse::Csr<T>& matrix() const { return matrix_; }
  // x, or B.
  [[nodiscard]] std::span<const T> first() const { return first_.view(); }
  // c of gespmv, or C where it is an operand.
  [[nodiscard]] std::span<const T> second() const { return second_.view(); }
  // The result by rows, or, of sddmm and sums of sparse matrices, the values in the order of the
  // matrix's non-zeros.
  [[nodiscard]] std::span<T> output() { return output_.view(); }

 private:
  explicit TypedSparseData(const SparseProblem& problem) : SparseData(problem) {}
  void compute_reference();
  void compute_row(std::size_t row);
  void compute_values(std::size_t row);
  void keep(std::size_t at, double value, double magnitude, double count, double scale);

  sparse::Csr<T> matrix_;
  sparse::Array<T> first_;
  sparse::Array<T> second_;
  sparse::Array<T> output_;
  std::vector<double> reference_;
  std::vector<double> bound_;
};

extern template class TypedSparseData<float>;
extern template class TypedSparseData<double>;

}  // namespace foretune::sparse_cpu
