// Matrices that benchmarks of sparse storages work on: a file's, or drawn ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/base/thread_pool.h"
#include "foretune/formats/compressed.h"
#include "foretune/sparse/csr.h"

namespace foretune::bench {

struct NamedMatrix {
  std::string name;
  sparse::Csr<float> matrix;
};

// Copies the arrays to fresh memory, in as many parts as there are threads.
inline Status copy_arrays(const sparse::Csr<float>& matrix, ThreadPool& pool) {
  FORETUNE_TRY(auto starts, sparse::Array<std::int64_t>::create(matrix.starts.size()));
  FORETUNE_TRY(auto columns, sparse::Array<std::int32_t>::create(matrix.column_of.size()));
  FORETUNE_TRY(auto values, sparse::Array<float>::create(matrix.values.size()));
  const auto copy_part = [&](std::size_t part, auto& to, const auto& from) {
    const std::size_t first = from.size() * part / pool.threads();
    const std::size_t last = from.size() * (part + 1) / pool.threads();
    std::copy(from.data() + first, from.data() + last, to.data() + first);
  };
  pool.run(pool.threads(), [&](std::size_t part) {
    copy_part(part, starts, matrix.starts);
    copy_part(part, columns, matrix.column_of);
    copy_part(part, values, matrix.values);
  });
  return {};
}

// Draws a square matrix. `place` draws the columns of a row.
template <class Place>
Result<sparse::Csr<float>> drawn_matrix(std::int64_t rows, std::int64_t non_zeros, Rng& rng,
                                        const Place& place) {
  sparse::Csr<float> out;
  out.rows = rows;
  out.columns = rows;
  FORETUNE_TRY(out.starts, sparse::Array<std::int64_t>::create(static_cast<std::size_t>(rows) + 1));
  std::vector<std::int32_t> all;
  std::vector<std::int32_t> row_columns;
  all.reserve(static_cast<std::size_t>(non_zeros));
  out.starts[0] = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    row_columns.clear();
    place(row, row_columns, rng);
    std::sort(row_columns.begin(), row_columns.end());
    row_columns.erase(std::unique(row_columns.begin(), row_columns.end()), row_columns.end());
    all.insert(all.end(), row_columns.begin(), row_columns.end());
    out.starts[static_cast<std::size_t>(row) + 1] = static_cast<std::int64_t>(all.size());
  }
  FORETUNE_TRY(out.column_of, sparse::Array<std::int32_t>::create(all.size()));
  std::copy(all.begin(), all.end(), out.column_of.data());
  FORETUNE_TRY(out.values, sparse::Array<float>::create(all.size()));
  std::fill_n(out.values.data(), all.size(), 1.0F);
  return out;
}

// Returns the matrix of `--matrix`, or three drawn ones of about `--non-zeros` in `--rows` rows.
inline Result<std::vector<NamedMatrix>> sparse_matrices(int argc, char** argv) {
  std::vector<NamedMatrix> out;
  if (const std::string path = argument(argc, argv, "matrix"); !path.empty()) {
    FORETUNE_TRY(const std::vector<std::byte> file, formats::read_maybe_compressed(path));
    const double begin = seconds_now();
    FORETUNE_TRY(const sparse::Coordinates coordinates, sparse::read_coordinates(file));
    std::printf("reading: %.1f ns a non-zero\n",
                1e9 * (seconds_now() - begin) / static_cast<double>(coordinates.size()));
    FORETUNE_TRY(sparse::Csr<float> matrix, sparse::csr_from<float>(coordinates));
    out.push_back({path, std::move(matrix)});
    return out;
  }
  const auto non_zeros =
      static_cast<std::int64_t>(count_argument<std::size_t>(argc, argv, "non-zeros", 10'000'000));
  const auto rows = std::max<std::int64_t>(
      64, static_cast<std::int64_t>(count_argument<std::size_t>(argc, argv, "rows", 500'000)));
  const std::int64_t mean = std::max<std::int64_t>(1, non_zeros / rows);
  Rng rng(1);
  using Columns = std::vector<std::int32_t>;
  FORETUNE_TRY(auto scattered,
               drawn_matrix(rows, non_zeros, rng, [&](std::int64_t, Columns& columns, Rng& random) {
                 for (std::int64_t i = random.between(1, 2 * mean - 1); i > 0; --i) {
                   columns.push_back(static_cast<std::int32_t>(random.between(0, rows - 1)));
                 }
               }));
  out.push_back({"scattered", std::move(scattered)});
  FORETUNE_TRY(
      auto band, drawn_matrix(rows, non_zeros, rng, [&](std::int64_t row, Columns& columns, Rng&) {
        for (std::int64_t i = 0; i < mean; ++i) {
          columns.push_back(
              static_cast<std::int32_t>(std::clamp<std::int64_t>(row + i - mean / 2, 0, rows - 1)));
        }
      }));
  out.push_back({"band", std::move(band)});
  Columns blocks;
  FORETUNE_TRY(
      auto blocked,
      drawn_matrix(rows, non_zeros, rng, [&](std::int64_t row, Columns& columns, Rng& random) {
        if (row % 4 == 0) {
          blocks.clear();
          for (std::int64_t i = 0; i < (mean + 3) / 4; ++i) {
            blocks.push_back(static_cast<std::int32_t>(random.between(0, rows / 4 - 1)));
          }
        }
        for (const std::int32_t block : blocks) {
          for (std::int32_t i = 0; i < 4; ++i) {
            columns.push_back(4 * block + i);
          }
        }
      }));
  out.push_back({"blocks of 4 x 4", std::move(blocked)});
  return out;
}

}  // namespace foretune::bench
