// A sparse matrix in its canonical form: rows one after the other, the columns of each rising, each
// place at most once. All other storages are packed from it.
//
//   FORETUNE_TRY(const sparse::Csr<float> matrix, sparse::csr_from<float>(coordinates));
//   for (std::int64_t i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
//     use(matrix.column_of[i], matrix.values[i]);
//   }
//
// Thread safety: plain values. Cost: 4 bytes and a value a non-zero, 8 bytes a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/sparse/array.h"
#include "foretune/sparse/coordinates.h"

namespace foretune::sparse {

// The places of the non-zeros, which are all that storage sizes and descriptors depend on.
struct PatternView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::int64_t> starts;     // rows + 1, from 0
  std::span<const std::int32_t> column_of;  // of each non-zero

  [[nodiscard]] std::int64_t size() const { return starts[static_cast<std::size_t>(rows)]; }
};

template <class T>
struct Csr {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Array<std::int64_t> starts;
  Array<std::int32_t> column_of;
  Array<T> values;

  [[nodiscard]] std::int64_t size() const { return starts[static_cast<std::size_t>(rows)]; }
  [[nodiscard]] PatternView pattern() const {
    return {rows, columns, starts.view(), column_of.view()};
  }
};

// Returns the matrix; a pattern gets the values of pattern_value(). The values of entries at the
// same place are added, as MatrixMarket's readers do. A tensor of extents I x J x K becomes the
// matrix of I rows and J * K columns whose column is j * K + k. Errors: kInvalidArgument for values
// that T cannot hold, kUnsupported for a tensor of 2^31 columns or more and where memory is
// lacking. T is float or double.
template <class T>
Result<Csr<T>> csr_from(const Coordinates& coordinates);

// Returns a copy of a matrix that somebody else holds in three arrays, as SciPy does, with indices
// of 32 or 64 bits. Errors: kInvalidArgument, with the row, for arrays whose lengths do not fit,
// for starts that fall and for columns that do not rise or lie outside; kUnsupported for 2^31
// columns or more and where memory is lacking. I is std::int32_t or std::int64_t.
template <class T, class I>
Result<Csr<T>> csr_from_arrays(std::int64_t rows, std::int64_t columns, std::span<const I> starts,
                               std::span<const I> column_of, std::span<const T> values);

// Returns the transposed matrix: the rows of the result are the columns of the matrix, so that it
// holds the matrix by columns (CSC). Errors: kUnsupported where memory is lacking.
template <class T>
Result<Csr<T>> transposed(const Csr<T>& matrix, ThreadPool& pool);

extern template Result<Csr<float>> csr_from(const Coordinates&);
extern template Result<Csr<double>> csr_from(const Coordinates&);
extern template Result<Csr<float>> csr_from_arrays(std::int64_t, std::int64_t,
                                                   std::span<const std::int32_t>,
                                                   std::span<const std::int32_t>,
                                                   std::span<const float>);
extern template Result<Csr<float>> csr_from_arrays(std::int64_t, std::int64_t,
                                                   std::span<const std::int64_t>,
                                                   std::span<const std::int64_t>,
                                                   std::span<const float>);
extern template Result<Csr<double>> csr_from_arrays(std::int64_t, std::int64_t,
                                                    std::span<const std::int32_t>,
                                                    std::span<const std::int32_t>,
                                                    std::span<const double>);
extern template Result<Csr<double>> csr_from_arrays(std::int64_t, std::int64_t,
                                                    std::span<const std::int64_t>,
                                                    std::span<const std::int64_t>,
                                                    std::span<const double>);
extern template Result<Csr<float>> transposed(const Csr<float>&, ThreadPool&);
extern template Result<Csr<double>> transposed(const Csr<double>&, ThreadPool&);

}  // namespace foretune::sparse
