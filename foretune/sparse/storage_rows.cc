// Storages that keep rows as they are: CSC, COO, DCSR, ELL and the hybrid.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/sparse/internal/row_shares.h"
#include "foretune/sparse/internal/storage_bytes.h"
#include "foretune/sparse/storage.h"

namespace foretune::sparse {
namespace {

std::uint64_t as_unsigned(std::int64_t count) { return static_cast<std::uint64_t>(count); }

std::int64_t length_of(const PatternView& pattern, std::size_t row) {
  return pattern.starts[row + 1] - pattern.starts[row];
}

std::int64_t longest_row(const PatternView& pattern) {
  std::int64_t longest = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(pattern.rows); ++row) {
    longest = std::max(longest, length_of(pattern, row));
  }
  return longest;
}

std::uint64_t filled_rows(const PatternView& pattern) {
  std::uint64_t count = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(pattern.rows); ++row) {
    count += length_of(pattern, row) > 0 ? 1U : 0U;
  }
  return count;
}

// Returns the non-zeros of rows beyond their first `width`.
std::uint64_t rest_of(const PatternView& pattern, std::int64_t width) {
  std::uint64_t rest = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(pattern.rows); ++row) {
    rest += as_unsigned(std::max<std::int64_t>(0, length_of(pattern, row) - width));
  }
  return rest;
}

template <class T>
void copy_entries(const Csr<T>& matrix, const internal::RowShares& shares, ThreadPool& pool,
                  Array<std::int32_t>& column_of, Array<T>& values) {
  pool.run(shares.count(), [&](std::size_t share) {
    const auto [first, last] = shares.entries(share);
    if (first < last) {
      std::memcpy(column_of.data() + first, matrix.column_of.data() + first,
                  (last - first) * sizeof(std::int32_t));
      std::memcpy(values.data() + first, matrix.values.data() + first, (last - first) * sizeof(T));
    }
  });
}

// Fills the slots of all rows with their first non-zeros, and with zeros behind them.
template <class T>
Result<Ell<T>> fill_ell(const Csr<T>& matrix, std::int64_t width, ThreadPool& pool) {
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto slots = static_cast<std::size_t>(width);
  Ell<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  out.width = width;
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(rows * slots));
  FORETUNE_TRY(out.values, Array<T>::create(rows * slots));
  const internal::RowShares shares(matrix.pattern(), pool.threads());
  pool.run(shares.count(), [&](std::size_t share) {
    const auto [first, last] = shares.rows(share);
    for (std::size_t row = first; row < last; ++row) {
      const auto begin = static_cast<std::size_t>(matrix.starts[row]);
      const std::size_t length = static_cast<std::size_t>(matrix.starts[row + 1]) - begin;
      const std::size_t kept = std::min(length, slots);
      for (std::size_t slot = 0; slot < kept; ++slot) {
        out.column_of[slot * rows + row] = matrix.column_of[begin + slot];
        out.values[slot * rows + row] = matrix.values[begin + slot];
      }
      const std::int32_t column = kept > 0 ? matrix.column_of[begin + kept - 1] : 0;
      for (std::size_t slot = kept; slot < slots; ++slot) {
        out.column_of[slot * rows + row] = column;
        out.values[slot * rows + row] = T{0};
      }
    }
  });
  return out;
}

}  // namespace

Status check_fits(std::string_view storage, std::uint64_t bytes, std::uint64_t max_bytes) {
  if (bytes > max_bytes) {
    return fail(ErrorCode::kUnsupported, storage, " takes ", bytes,
                " bytes, more than the limit of ", max_bytes);
  }
  return {};
}

StorageSize count_csr(const PatternView& pattern) {
  const std::uint64_t size = as_unsigned(pattern.size());
  return {size,
          size * internal::kIndexBytes + (as_unsigned(pattern.rows) + 1) * internal::kStartBytes};
}

StorageSize count_csc(const PatternView& pattern) {
  const std::uint64_t size = as_unsigned(pattern.size());
  return {size, size * internal::kIndexBytes +
                    (as_unsigned(pattern.columns) + 1) * internal::kStartBytes};
}

StorageSize count_coo(const PatternView& pattern) {
  const std::uint64_t size = as_unsigned(pattern.size());
  return {size, 2 * size * internal::kIndexBytes};
}

StorageSize count_dcsr(const PatternView& pattern) {
  const std::uint64_t size = as_unsigned(pattern.size());
  const std::uint64_t rows = filled_rows(pattern);
  return {size, (size + rows) * internal::kIndexBytes + (rows + 1) * internal::kStartBytes};
}

StorageSize count_ell(const PatternView& pattern) {
  const std::uint64_t values = as_unsigned(pattern.rows) * as_unsigned(longest_row(pattern));
  return {values, values * internal::kIndexBytes};
}

StorageSize count_hybrid(const PatternView& pattern, std::int64_t width) {
  const std::uint64_t slots = as_unsigned(pattern.rows) * as_unsigned(width);
  const std::uint64_t rest = rest_of(pattern, width);
  return {slots + rest, slots * internal::kIndexBytes + 2 * rest * internal::kIndexBytes};
}

std::int64_t hybrid_width(const PatternView& pattern) {
  std::vector<std::int64_t> rows_of_length(static_cast<std::size_t>(longest_row(pattern)) + 1);
  for (std::size_t row = 0; row < static_cast<std::size_t>(pattern.rows); ++row) {
    ++rows_of_length[static_cast<std::size_t>(length_of(pattern, row))];
  }
  std::int64_t longer = 0;
  for (std::size_t length = rows_of_length.size() - 1; length > 0; --length) {
    longer += rows_of_length[length];
    if (3 * longer >= pattern.rows) {
      return static_cast<std::int64_t>(length);
    }
  }
  return 0;
}

template <class T>
Result<Csc<T>> pack_csc(const Csr<T>& matrix, const PackOptions& options) {
  FORETUNE_TRY_STATUS(
      check_fits("CSC", count_csc(matrix.pattern()).bytes(sizeof(T)), options.max_bytes));
  FORETUNE_TRY(Csr<T> by_columns, transposed(matrix, options.pool));
  return Csc<T>{std::move(by_columns)};
}

template <class T>
Result<Coo<T>> pack_coo(const Csr<T>& matrix, const PackOptions& options) {
  FORETUNE_TRY_STATUS(
      check_fits("COO", count_coo(matrix.pattern()).bytes(sizeof(T)), options.max_bytes));
  const auto size = static_cast<std::size_t>(matrix.size());
  Coo<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  FORETUNE_TRY(out.row_of, Array<std::int32_t>::create(size));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(size));
  FORETUNE_TRY(out.values, Array<T>::create(size));
  const internal::RowShares shares(matrix.pattern(), options.pool.threads());
  copy_entries(matrix, shares, options.pool, out.column_of, out.values);
  options.pool.run(shares.count(), [&](std::size_t share) {
    const auto [first, last] = shares.rows(share);
    for (std::size_t row = first; row < last; ++row) {
      std::fill(out.row_of.data() + matrix.starts[row], out.row_of.data() + matrix.starts[row + 1],
                static_cast<std::int32_t>(row));
    }
  });
  return out;
}

template <class T>
Result<Dcsr<T>> pack_dcsr(const Csr<T>& matrix, const PackOptions& options) {
  FORETUNE_TRY_STATUS(
      check_fits("DCSR", count_dcsr(matrix.pattern()).bytes(sizeof(T)), options.max_bytes));
  const auto size = static_cast<std::size_t>(matrix.size());
  const std::size_t stored = filled_rows(matrix.pattern());
  Dcsr<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  FORETUNE_TRY(out.row_of, Array<std::int32_t>::create(stored));
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(stored + 1));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(size));
  FORETUNE_TRY(out.values, Array<T>::create(size));
  std::size_t at = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
    if (matrix.starts[row] < matrix.starts[row + 1]) {
      out.row_of[at] = static_cast<std::int32_t>(row);
      out.starts[at] = matrix.starts[row];
      ++at;
    }
  }
  out.starts[stored] = matrix.size();
  copy_entries(matrix, internal::RowShares(matrix.pattern(), options.pool.threads()), options.pool,
               out.column_of, out.values);
  return out;
}

template <class T>
Result<Ell<T>> pack_ell(const Csr<T>& matrix, const PackOptions& options) {
  FORETUNE_TRY_STATUS(
      check_fits("ELL", count_ell(matrix.pattern()).bytes(sizeof(T)), options.max_bytes));
  return fill_ell(matrix, longest_row(matrix.pattern()), options.pool);
}

template <class T>
Result<Hybrid<T>> pack_hybrid(const Csr<T>& matrix, std::int64_t width,
                              const PackOptions& options) {
  const StorageSize size = count_hybrid(matrix.pattern(), width);
  FORETUNE_TRY_STATUS(
      check_fits(concat("a hybrid of width ", width), size.bytes(sizeof(T)), options.max_bytes));
  Hybrid<T> out;
  FORETUNE_TRY(out.ell, fill_ell(matrix, width, options.pool));
  const std::size_t rest = rest_of(matrix.pattern(), width);
  out.rest.rows = matrix.rows;
  out.rest.columns = matrix.columns;
  FORETUNE_TRY(out.rest.row_of, Array<std::int32_t>::create(rest));
  FORETUNE_TRY(out.rest.column_of, Array<std::int32_t>::create(rest));
  FORETUNE_TRY(out.rest.values, Array<T>::create(rest));
  std::size_t at = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
    for (auto i =
             static_cast<std::size_t>(std::min(matrix.starts[row] + width, matrix.starts[row + 1]));
         i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
      out.rest.row_of[at] = static_cast<std::int32_t>(row);
      out.rest.column_of[at] = matrix.column_of[i];
      out.rest.values[at] = matrix.values[i];
      ++at;
    }
  }
  return out;
}

template Result<Csc<float>> pack_csc(const Csr<float>&, const PackOptions&);
template Result<Csc<double>> pack_csc(const Csr<double>&, const PackOptions&);
template Result<Coo<float>> pack_coo(const Csr<float>&, const PackOptions&);
template Result<Coo<double>> pack_coo(const Csr<double>&, const PackOptions&);
template Result<Dcsr<float>> pack_dcsr(const Csr<float>&, const PackOptions&);
template Result<Dcsr<double>> pack_dcsr(const Csr<double>&, const PackOptions&);
template Result<Ell<float>> pack_ell(const Csr<float>&, const PackOptions&);
template Result<Ell<double>> pack_ell(const Csr<double>&, const PackOptions&);
template Result<Hybrid<float>> pack_hybrid(const Csr<float>&, std::int64_t, const PackOptions&);
template Result<Hybrid<double>> pack_hybrid(const Csr<double>&, std::int64_t, const PackOptions&);

}  // namespace foretune::sparse
