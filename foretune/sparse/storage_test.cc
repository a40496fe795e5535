// Every storage is packed from random matrices and taken apart again by plain loops.
#include "foretune/sparse/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 29;
constexpr int kTrials = 400;

// Collects the values of a storage; added zeros must lie at a legal column.
class Collector {
 public:
  explicit Collector(const Csr<float>& matrix) : rows_(matrix.rows), columns_(matrix.columns) {}

  void add(std::int64_t row, std::int64_t column, float value) {
    ++stored_;
    if (value == 0) {
      EXPECT_GE(column, 0);
      EXPECT_LT(column, columns_);
      return;
    }
    EXPECT_LT(row, rows_);
    const Places::key_type place{row, column};
    EXPECT_TRUE(places_.try_emplace(place, static_cast<double>(value)).second)
        << row << " " << column;
  }
  // For storages whose zeros may lie outside of the matrix.
  void add_in_block(std::int64_t row, std::int64_t column, float value) {
    if (value == 0) {
      ++stored_;
    } else {
      add(row, column, value);
    }
  }
  [[nodiscard]] const Places& places() const { return places_; }
  [[nodiscard]] std::uint64_t stored() const { return stored_; }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  Places places_;
  std::uint64_t stored_ = 0;
};

void collect(const Ell<float>& ell, Collector& out) {
  for (std::int64_t row = 0; row < ell.rows; ++row) {
    for (std::int64_t slot = 0; slot < ell.width; ++slot) {
      const auto at = static_cast<std::size_t>(slot * ell.rows + row);
      out.add(row, ell.column_of[at], ell.values[at]);
    }
  }
}

void collect(const Coo<float>& coo, Collector& out) {
  for (std::size_t i = 0; i < coo.values.size(); ++i) {
    out.add(coo.row_of[i], coo.column_of[i], coo.values[i]);
  }
}

template <class... Arrays>
std::uint64_t bytes_of_all(const Arrays&... arrays) {
  return (std::uint64_t{0} + ... + arrays.bytes());
}

// Calls check(matrix, pool) for random matrices.
template <class Check>
void for_random_matrices(const Check& check) {
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool one(1);
  ThreadPool three(3);
  for (int trial = 0; trial < kTrials; ++trial) {
    SCOPED_TRACE(concat("trial ", trial));
    const Csr<float> matrix =
        csr_from<float>(random_matrix(trial % 10 == 0 ? 300 : 40, rng)).value();
    check(matrix, trial % 8 == 0 ? three : one, rng);
    if (::testing::Test::HasFailure()) {
      return;
    }
  }
}

// Compares what was stored with the matrix and with the size that was counted before.
void expect_same(const Csr<float>& matrix, const Collector& found, const StorageSize& size,
                 std::uint64_t bytes) {
  EXPECT_EQ(found.places(), places_of(matrix));
  EXPECT_EQ(found.stored(), size.values);
  EXPECT_EQ(bytes, size.bytes(sizeof(float)));
}

TEST(StorageTest, CscRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& /*rng*/) {
    const Csc<float> csc = pack_csc(matrix, {pool}).value();
    Collector found(matrix);
    for (const auto& [place, value] : places_of(csc.by_columns)) {
      found.add(place.second, place.first, static_cast<float>(value));
    }
    expect_same(
        matrix, found, count_csc(matrix.pattern()),
        bytes_of_all(csc.by_columns.starts, csc.by_columns.column_of, csc.by_columns.values));
  });
}

TEST(StorageTest, CooRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& /*rng*/) {
    const Coo<float> coo = pack_coo(matrix, {pool}).value();
    Collector found(matrix);
    collect(coo, found);
    expect_same(matrix, found, count_coo(matrix.pattern()),
                bytes_of_all(coo.row_of, coo.column_of, coo.values));
  });
}

TEST(StorageTest, DcsrRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& /*rng*/) {
    const Dcsr<float> dcsr = pack_dcsr(matrix, {pool}).value();
    Collector found(matrix);
    for (std::size_t row = 0; row < dcsr.row_of.size(); ++row) {
      EXPECT_LT(dcsr.starts[row], dcsr.starts[row + 1]);
      for (auto i = static_cast<std::size_t>(dcsr.starts[row]);
           i < static_cast<std::size_t>(dcsr.starts[row + 1]); ++i) {
        found.add(dcsr.row_of[row], dcsr.column_of[i], dcsr.values[i]);
      }
    }
    expect_same(matrix, found, count_dcsr(matrix.pattern()),
                bytes_of_all(dcsr.row_of, dcsr.starts, dcsr.column_of, dcsr.values));
  });
}

TEST(StorageTest, BcsrRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& rng) {
    const BlockShape block{static_cast<std::int32_t>(rng.between(1, rng.below(8) == 0 ? 64 : 9)),
                           static_cast<std::int32_t>(rng.between(1, rng.below(8) == 0 ? 64 : 9))};
    const Bcsr<float> bcsr = pack_bcsr(matrix, block, {pool}).value();
    Collector found(matrix);
    std::size_t at = 0;
    for (std::size_t tall = 0; tall + 1 < bcsr.starts.size(); ++tall) {
      for (auto i = static_cast<std::size_t>(bcsr.starts[tall]);
           i < static_cast<std::size_t>(bcsr.starts[tall + 1]); ++i) {
        EXPECT_TRUE(i == static_cast<std::size_t>(bcsr.starts[tall]) ||
                    bcsr.column_of[i - 1] < bcsr.column_of[i]);
        bool has_any = false;
        for (std::int32_t r = 0; r < block.rows; ++r) {
          for (std::int32_t c = 0; c < block.columns; ++c) {
            has_any = has_any || bcsr.values[at] != 0;
            found.add_in_block(static_cast<std::int64_t>(tall) * block.rows + r,
                               std::int64_t{bcsr.column_of[i]} * block.columns + c,
                               bcsr.values[at++]);
          }
        }
        EXPECT_TRUE(has_any);
      }
    }
    expect_same(matrix, found, count_bcsr(matrix.pattern(), block, pool),
                bytes_of_all(bcsr.starts, bcsr.column_of, bcsr.values));
  });
}

TEST(StorageTest, BlockDiagonalsRoundTrip) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& rng) {
    const auto height = static_cast<std::int32_t>(rng.between(1, 9));
    const BlockDiagonals<float> made = pack_block_diagonals(matrix, height, {pool}).value();
    Places found;
    for (std::size_t tall = 0; tall + 1 < made.starts.size(); ++tall) {
      for (auto i = static_cast<std::size_t>(made.starts[tall]);
           i < static_cast<std::size_t>(made.starts[tall + 1]); ++i) {
        EXPECT_TRUE(i == static_cast<std::size_t>(made.starts[tall]) ||
                    made.column_of[i - 1] < made.column_of[i]);
        for (std::int32_t h = 0; h < height; ++h) {
          const float value =
              made.values[i * static_cast<std::size_t>(height) + static_cast<std::size_t>(h)];
          if (value != 0) {
            found[{static_cast<std::int64_t>(tall) * height + h,
                   made.column_of[i] + h - (height - 1)}] = static_cast<double>(value);
          }
        }
      }
    }
    EXPECT_EQ(found, places_of(matrix));
  });
}

TEST(StorageTest, EllRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& /*rng*/) {
    const Ell<float> ell = pack_ell(matrix, {pool}).value();
    Collector found(matrix);
    collect(ell, found);
    expect_same(matrix, found, count_ell(matrix.pattern()),
                bytes_of_all(ell.column_of, ell.values));
  });
}

TEST(StorageTest, SellRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& rng) {
    const auto height = static_cast<std::int32_t>(rng.between(1, 17));
    const SliceShape slice{height, height * rng.between(1, 20)};
    const Sell<float> sell = pack_sell(matrix, slice, {pool}).value();
    Collector found(matrix);
    std::set<std::int32_t> rows;
    for (std::size_t i = 0; i + 1 < sell.starts.size(); ++i) {
      const std::int64_t width = (sell.starts[i + 1] - sell.starts[i]) / height;
      for (std::int32_t lane = 0; lane < height; ++lane) {
        const std::int32_t row =
            sell.row_of[i * static_cast<std::size_t>(height) + static_cast<std::size_t>(lane)];
        EXPECT_TRUE(row < 0 || rows.insert(row).second);
        for (std::int64_t slot = 0; slot < width; ++slot) {
          const auto at = static_cast<std::size_t>(sell.starts[i] + slot * height + lane);
          found.add(row, sell.column_of[at], sell.values[at]);
        }
      }
    }
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(matrix.rows));
    expect_same(matrix, found, count_sell(matrix.pattern(), slice),
                bytes_of_all(sell.starts, sell.row_of, sell.column_of, sell.values));
  });
}

TEST(StorageTest, SellSortsWithinWindows) {
  Coordinates coordinates;
  coordinates.extents = {6, 4, 1};
  // Rows of 1, 3, 0, 2, 3, 1 non-zeros.
  coordinates.indices = {{{0, 1, 1, 1, 3, 3, 4, 4, 4, 5}, {0, 0, 1, 2, 0, 1, 0, 1, 2, 3}, {}}};
  coordinates.values.assign(10, 1);
  const Csr<float> matrix = csr_from<float>(coordinates).value();
  ThreadPool pool(1);
  const Sell<float> sorted = pack_sell(matrix, {2, 4}, {pool}).value();
  EXPECT_THAT(sorted.row_of.view(), ElementsAre(1, 3, 0, 2, 4, 5));
  EXPECT_THAT(sorted.starts.view(), ElementsAre(0, 6, 8, 14));
  const Sell<float> padded = pack_sell(matrix, {4, 4}, {pool}).value();
  EXPECT_THAT(padded.row_of.view(), ElementsAre(0, 1, 2, 3, 4, 5, -1, -1))
      << "a window of one slice keeps the order";
}

TEST(StorageTest, HybridRoundTrips) {
  for_random_matrices([](const Csr<float>& matrix, ThreadPool& pool, Rng& rng) {
    const std::int64_t width =
        rng.below(2) == 0 ? hybrid_width(matrix.pattern()) : rng.between(0, matrix.columns);
    const Hybrid<float> hybrid = pack_hybrid(matrix, width, {pool}).value();
    Collector found(matrix);
    collect(hybrid.ell, found);
    collect(hybrid.rest, found);
    expect_same(matrix, found, count_hybrid(matrix.pattern(), width),
                bytes_of_all(hybrid.ell.column_of, hybrid.ell.values, hybrid.rest.row_of,
                             hybrid.rest.column_of, hybrid.rest.values));
  });
}

TEST(StorageTest, TheHybridsWidthIsThatOfAThirdOfTheRows) {
  Coordinates coordinates;
  coordinates.extents = {6, 4, 1};
  coordinates.indices = {{{0, 1, 1, 1, 3, 3, 4, 4, 4, 5}, {0, 0, 1, 2, 0, 1, 0, 1, 2, 3}, {}}};
  coordinates.values.assign(10, 1);
  EXPECT_EQ(hybrid_width(csr_from<float>(coordinates)->pattern()), 3);
  coordinates.extents = {30, 4, 1};
  EXPECT_EQ(hybrid_width(csr_from<float>(coordinates)->pattern()), 0);
}

TEST(StorageTest, LargeStoragesAreRefusedWithTheirBytes) {
  // One full row of 1000 columns, 1000 rows: ELL has a million slots.
  Coordinates coordinates;
  coordinates.extents = {1000, 1000, 1};
  for (std::int32_t i = 0; i < 1000; ++i) {
    coordinates.indices[0].push_back(7);
    coordinates.indices[1].push_back(i);
    coordinates.values.push_back(1);
  }
  const Csr<double> matrix = csr_from<double>(coordinates).value();
  ThreadPool pool(1);
  const PackOptions options{pool, 100'000};
  const auto ell = pack_ell(matrix, options);
  ASSERT_FALSE(ell);
  EXPECT_EQ(ell.error(), (Error{ErrorCode::kUnsupported,
                                "ELL takes 12000000 bytes, more than the limit of 100000"}));
  EXPECT_THAT(pack_bcsr(matrix, {16, 2}, options).error().message,
              HasSubstr("BCSR of 16 x 2 blocks takes "));
  EXPECT_THAT(pack_sell(matrix, {32, 32}, options).error().message, HasSubstr("SELL-32-32 takes"));
  EXPECT_THAT(pack_hybrid(matrix, 9, options).error().message, HasSubstr("width 9 takes"));
  EXPECT_TRUE(pack_coo(matrix, options));
  EXPECT_TRUE(pack_dcsr(matrix, options));
  EXPECT_TRUE(pack_hybrid(matrix, 0, options));
}

// Values of eight bytes take other paths in memory, not in logic.
TEST(StorageTest, DoublesArePackedAsFloatsAre) {
  Rng rng(kSeed);
  ThreadPool pool(2);
  const Coordinates coordinates = random_matrix(40, rng);
  const Csr<float> narrow = csr_from<float>(coordinates).value();
  const Csr<double> wide = csr_from<double>(coordinates).value();
  const auto same = [](const Array<float>& a, const Array<double>& b) {
    return std::equal(a.view().begin(), a.view().end(), b.view().begin(), b.view().end(),
                      [](float x, double y) { return static_cast<double>(x) == y; });
  };
  EXPECT_TRUE(
      same(pack_bcsr(narrow, {4, 4}, {pool})->values, pack_bcsr(wide, {4, 4}, {pool})->values));
  EXPECT_TRUE(
      same(pack_sell(narrow, {8, 16}, {pool})->values, pack_sell(wide, {8, 16}, {pool})->values));
  EXPECT_TRUE(same(pack_ell(narrow, {pool})->values, pack_ell(wide, {pool})->values));
  EXPECT_TRUE(
      same(pack_csc(narrow, {pool})->by_columns.values, pack_csc(wide, {pool})->by_columns.values));
}

}  // namespace
}  // namespace foretune::sparse
