// Random matrices of the shapes at which storages and kernels go wrong, and a plain form that any
// storage can be compared with. For tests only.
// Thread safety: free functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/csr.h"

namespace foretune::sparse {

// Values by row and column.
using Places = std::map<std::pair<std::int64_t, std::int64_t>, double>;

template <class T>
Places places_of(const Csr<T>& matrix) {
  Places out;
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
    for (auto i = static_cast<std::size_t>(matrix.starts[row]);
         i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
      out[{static_cast<std::int64_t>(row), matrix.column_of[i]}] =
          static_cast<double>(matrix.values[i]);
    }
  }
  return out;
}

// Returns a matrix of up to `max_extent` rows and columns, one of: scattered, without a non-zero,
// one row full, one column full, a band, in blocks, of rows with very different lengths, one row
// high, one column wide. Values are small integers other than zero, so that sums are exact.
inline Coordinates random_matrix(std::int64_t max_extent, Rng& rng) {
  Coordinates out;
  const std::uint64_t kind = rng.below(9);
  const std::int64_t rows = kind == 7 ? 1 : rng.between(1, max_extent);
  const std::int64_t columns = kind == 8 ? 1 : rng.between(1, max_extent);
  out.extents = {rows, columns, 1};
  Places places;
  const auto put = [&](std::int64_t row, std::int64_t column) {
    if (row >= 0 && row < rows && column >= 0 && column < columns) {
      const auto value = static_cast<double>(rng.between(1, 8));
      places[{row, column}] = rng.below(2) == 0 ? value : -value;
    }
  };
  const std::int64_t count = kind == 1 ? 0 : rng.between(0, 2 * (rows + columns));
  const std::int64_t line = rng.between(0, kind == 3 ? columns - 1 : rows - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rng.between(0, rows - 1);
    const std::int64_t column = rng.between(0, columns - 1);
    if (kind == 4) {
      put(row, row + rng.between(-2, 2));
    } else if (kind == 5) {
      for (std::int64_t j = 0; j < 12; ++j) {
        put(row / 4 * 4 + j / 3, column / 3 * 3 + j % 3);
      }
    } else if (kind == 6) {
      put(std::min(row, rng.between(0, rows - 1) * rng.between(0, 1)), column);
    } else {
      put(row, column);
    }
  }
  for (std::int64_t i = 0; kind == 2 && i < columns; ++i) {
    put(line, i);
  }
  for (std::int64_t i = 0; kind == 3 && i < rows; ++i) {
    put(i, line);
  }
  for (const auto& [place, value] : places) {
    out.indices[0].push_back(static_cast<std::int32_t>(place.first));
    out.indices[1].push_back(static_cast<std::int32_t>(place.second));
    out.values.push_back(value);
  }
  return out;
}

// Returns a tensor of one of the same shapes: the columns of a matrix dealt to columns and depths.
inline Coordinates random_tensor(std::int64_t max_extent, Rng& rng) {
  Coordinates out = random_matrix(max_extent, rng);
  const std::int64_t depth = rng.between(1, 8);
  out.is_tensor = true;
  out.extents[1] = (out.extents[1] + depth - 1) / depth;
  out.extents[2] = depth;
  for (std::int32_t& column : out.indices[1]) {
    out.indices[2].push_back(static_cast<std::int32_t>(column % depth));
    column = static_cast<std::int32_t>(column / depth);
  }
  return out;
}

}  // namespace foretune::sparse
