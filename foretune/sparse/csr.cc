#include "foretune/sparse/csr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/sparse/internal/row_shares.h"

namespace foretune::sparse {
namespace {

template <class T>
struct Entry {
  std::int32_t column;
  T value;
};

// The value of one entry, before it is rounded to T.
double value_of(const Coordinates& coordinates, std::size_t i) {
  if (!coordinates.is_pattern()) {
    return coordinates.values[i];
  }
  return pattern_value(coordinates.indices[0][i], coordinates.indices[1][i],
                       coordinates.is_tensor ? coordinates.indices[2][i] : 0);
}

// Sorts the entries of one row and merges those at the same place. Returns their new number.
template <class T>
std::size_t make_canonical(std::span<std::int32_t> columns, std::span<T> values, bool is_pattern,
                           std::vector<Entry<T>>& scratch) {
  const auto rises = [](std::int32_t a, std::int32_t b) { return a >= b; };
  if (std::adjacent_find(columns.begin(), columns.end(), rises) == columns.end()) {
    return columns.size();
  }
  scratch.clear();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    scratch.push_back({columns[i], values[i]});
  }
  // Stable, so that sums do not depend on the library's sorting.
  std::stable_sort(scratch.begin(), scratch.end(),
                   [](const Entry<T>& a, const Entry<T>& b) { return a.column < b.column; });
  std::size_t count = 0;
  for (const Entry<T>& entry : scratch) {
    if (count > 0 && columns[count - 1] == entry.column) {
      values[count - 1] += is_pattern ? T{0} : entry.value;
      continue;
    }
    columns[count] = entry.column;
    values[count] = entry.value;
    ++count;
  }
  return count;
}

// Puts the entries of each row behind each other, in the order of the file.
template <class T>
Status scatter(const Coordinates& coordinates, std::int64_t third, Csr<T>& out) {
  for (const std::int32_t row : coordinates.indices[0]) {
    ++out.starts[static_cast<std::size_t>(row) + 1];
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(out.rows); ++row) {
    out.starts[row + 1] += out.starts[row];
  }
  FORETUNE_TRY(auto next, Array<std::int64_t>::create(static_cast<std::size_t>(out.rows)));
  std::copy_n(out.starts.data(), next.size(), next.data());
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const double value = value_of(coordinates, i);
    const auto rounded = static_cast<T>(value);
    if (!std::isfinite(rounded)) {
      return fail(ErrorCode::kInvalidArgument, "the value ", value, " in row ",
                  coordinates.indices[0][i] + 1, " is too large for f32");
    }
    const auto at =
        static_cast<std::size_t>(next[static_cast<std::size_t>(coordinates.indices[0][i])]++);
    out.column_of[at] =
        static_cast<std::int32_t>(coordinates.indices[1][i] * third +
                                  (coordinates.is_tensor ? coordinates.indices[2][i] : 0));
    out.values[at] = rounded;
  }
  return {};
}

}  // namespace

template <class T>
Result<Csr<T>> csr_from(const Coordinates& coordinates) {
  const std::int64_t third = coordinates.extents[2];
  Csr<T> out;
  out.rows = coordinates.extents[0];
  out.columns = coordinates.extents[1] * third;
  if (out.columns > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::kUnsupported, "a tensor of ", out.rows, " x ", coordinates.extents[1],
                " x ", third, " has more than 2^31 - 1 columns as a matrix");
  }
  FORETUNE_TRY(out.starts, Array<std::int64_t>::zeros(static_cast<std::size_t>(out.rows) + 1));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(coordinates.size()));
  FORETUNE_TRY(out.values, Array<T>::create(coordinates.size()));
  FORETUNE_TRY_STATUS(scatter(coordinates, third, out));
  std::vector<Entry<T>> scratch;
  std::size_t to = 0;
  std::size_t begin = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(out.rows); ++row) {
    const auto end = static_cast<std::size_t>(out.starts[row + 1]);
    const std::size_t count = make_canonical<T>(out.column_of.view().subspan(begin, end - begin),
                                                out.values.view().subspan(begin, end - begin),
                                                coordinates.is_pattern(), scratch);
    if (to != begin) {
      std::copy_n(out.column_of.data() + begin, count, out.column_of.data() + to);
      std::copy_n(out.values.data() + begin, count, out.values.data() + to);
    }
    to += count;
    begin = end;
    out.starts[row + 1] = static_cast<std::int64_t>(to);
  }
  out.column_of.shorten(to);
  out.values.shorten(to);
  return out;
}

template <class T, class I>
Result<Csr<T>> csr_from_arrays(std::int64_t rows, std::int64_t columns, std::span<const I> starts,
                               std::span<const I> column_of, std::span<const T> values) {
  if (rows < 0 || columns < 0 || starts.size() != static_cast<std::size_t>(rows) + 1) {
    return fail(ErrorCode::kInvalidArgument, "a matrix of ", rows, " x ", columns, " cannot have ",
                starts.size(), " starts of rows");
  }
  if (columns > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::kUnsupported, "the matrix has ", columns,
                " columns; up to 2^31 - 1 are supported");
  }
  const auto size = static_cast<std::int64_t>(values.size());
  if (column_of.size() != values.size() || starts.front() != 0 || starts.back() != size) {
    return fail(ErrorCode::kInvalidArgument, "the rows go from ", starts.front(), " to ",
                starts.back(), ", and there are ", column_of.size(), " columns and ", size,
                " values");
  }
  Csr<T> out;
  out.rows = rows;
  out.columns = columns;
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(starts.size()));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(column_of.size()));
  FORETUNE_TRY(out.values, Array<T>::create(values.size()));
  out.starts[0] = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const auto begin = static_cast<std::int64_t>(starts[row]);
    const auto end = static_cast<std::int64_t>(starts[row + 1]);
    if (end < begin || end > size) {
      return fail(ErrorCode::kInvalidArgument, "row ", row, " goes from ", begin, " to ", end,
                  ", and there are ", size, " non-zeros");
    }
    out.starts[row + 1] = end;
    std::int64_t before = -1;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto column = static_cast<std::int64_t>(column_of[i]);
      if (column <= before || column >= columns) {
        return fail(ErrorCode::kInvalidArgument, "row ", row, " has column ", column,
                    before < 0 ? " first" : concat(" behind ", before),
                    ": columns rise, from 0 to ", columns - 1);
      }
      before = column;
      out.column_of[i] = static_cast<std::int32_t>(column);
    }
  }
  std::copy(values.begin(), values.end(), out.values.data());
  return out;
}

// Each thread counts and places the entries of its own rows, so that the order within a column is
// that of the rows whatever the number of threads.
template <class T>
Result<Csr<T>> transposed(const Csr<T>& matrix, ThreadPool& pool) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto size = static_cast<std::size_t>(matrix.size());
  Csr<T> out;
  out.rows = matrix.columns;
  out.columns = matrix.rows;
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(columns + 1));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(size));
  FORETUNE_TRY(out.values, Array<T>::create(size));
  // A counter for each column and thread must not cost more than the non-zeros.
  const std::size_t max_shares = std::max<std::size_t>(1, size / std::max<std::size_t>(1, columns));
  const internal::RowShares shares(matrix.pattern(), std::min(pool.threads(), max_shares));
  FORETUNE_TRY(auto next, Array<std::int64_t>::zeros(shares.count() * columns));
  pool.run(shares.count(), [&](std::size_t share) {
    std::int64_t* const counts = next.data() + share * columns;
    const auto [first, last] = shares.entries(share);
    for (std::size_t i = first; i < last; ++i) {
      ++counts[static_cast<std::size_t>(matrix.column_of[i])];
    }
  });
  std::int64_t sum = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    out.starts[column] = sum;
    for (std::size_t share = 0; share < shares.count(); ++share) {
      sum += std::exchange(next[share * columns + column], sum);
    }
  }
  out.starts[columns] = sum;
  pool.run(shares.count(), [&](std::size_t share) {
    std::int64_t* const places = next.data() + share * columns;
    const auto [first, last] = shares.rows(share);
    for (std::size_t row = first; row < last; ++row) {
      for (auto i = static_cast<std::size_t>(matrix.starts[row]);
           i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
        const auto at =
            static_cast<std::size_t>(places[static_cast<std::size_t>(matrix.column_of[i])]++);
        out.column_of[at] = static_cast<std::int32_t>(row);
        out.values[at] = matrix.values[i];
      }
    }
  });
  return out;
}

template Result<Csr<float>> csr_from(const Coordinates&);
template Result<Csr<double>> csr_from(const Coordinates&);
template Result<Csr<float>> csr_from_arrays(std::int64_t, std::int64_t,
                                            std::span<const std::int32_t>,
                                            std::span<const std::int32_t>, std::span<const float>);
template Result<Csr<float>> csr_from_arrays(std::int64_t, std::int64_t,
                                            std::span<const std::int64_t>,
                                            std::span<const std::int64_t>, std::span<const float>);
template Result<Csr<double>> csr_from_arrays(std::int64_t, std::int64_t,
                                             std::span<const std::int32_t>,
                                             std::span<const std::int32_t>,
                                             std::span<const double>);
template Result<Csr<double>> csr_from_arrays(std::int64_t, std::int64_t,
                                             std::span<const std::int64_t>,
                                             std::span<const std::int64_t>,
                                             std::span<const double>);
template Result<Csr<float>> transposed(const Csr<float>&, ThreadPool&);
template Result<Csr<double>> transposed(const Csr<double>&, ThreadPool&);

}  // namespace foretune::sparse
