#include "foretune/sparse/csr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse {
namespace {

using ::testing::ElementsAre;

Coordinates random_coordinates(std::int64_t rows, std::int64_t columns, std::size_t count,
                               Rng& rng) {
  Coordinates out;
  out.extents = {rows, columns, 1};
  for (std::size_t i = 0; i < count; ++i) {
    out.indices[0].push_back(static_cast<std::int32_t>(rng.between(0, rows - 1)));
    out.indices[1].push_back(static_cast<std::int32_t>(rng.between(0, columns - 1)));
    out.values.push_back(static_cast<double>(rng.between(-8, 8)));
  }
  return out;
}

// Returns the places after it has checked that the matrix is canonical.
template <class T>
Places checked_places_of(const Csr<T>& matrix) {
  EXPECT_EQ(matrix.starts.size(), static_cast<std::size_t>(matrix.rows) + 1);
  EXPECT_EQ(matrix.starts[0], 0);
  EXPECT_EQ(matrix.column_of.size(), static_cast<std::size_t>(matrix.size()));
  EXPECT_EQ(matrix.values.size(), static_cast<std::size_t>(matrix.size()));
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
    for (auto i = static_cast<std::size_t>(matrix.starts[row]) + 1;
         i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
      EXPECT_LT(matrix.column_of[i - 1], matrix.column_of[i]);
    }
  }
  return places_of(matrix);
}

TEST(CsrTest, IsSortedWithTheSumsOfEqualPlaces) {
  constexpr std::uint64_t kSeed = 1;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int trial = 0; trial < 300; ++trial) {
    const Coordinates coordinates =
        random_coordinates(rng.between(1, 30), rng.between(1, 30), rng.below(200), rng);
    Places wanted;
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
      wanted[{coordinates.indices[0][i], coordinates.indices[1][i]}] += coordinates.values[i];
    }
    EXPECT_EQ(checked_places_of(csr_from<float>(coordinates).value()), wanted);
    EXPECT_EQ(checked_places_of(csr_from<double>(coordinates).value()), wanted);
  }
}

TEST(CsrTest, PatternsGetTheirValues) {
  Coordinates pattern;
  pattern.extents = {2, 5, 1};
  pattern.indices = {{{1, 0, 1}, {4, 2, 4}, {}}};
  const Csr<float> matrix = csr_from<float>(pattern).value();
  // An entry that the file has twice counts once.
  EXPECT_THAT(matrix.column_of.view(), ElementsAre(2, 4));
  EXPECT_THAT(matrix.values.view(), ElementsAre(static_cast<float>(pattern_value(0, 2, 0)),
                                                static_cast<float>(pattern_value(1, 4, 0))));
}

TEST(CsrTest, TensorsBecomeMatrices) {
  Coordinates tensor;
  tensor.is_tensor = true;
  tensor.extents = {2, 3, 4};
  tensor.indices = {{{1, 0}, {2, 1}, {3, 0}}};
  tensor.values = {5, 6};
  const Csr<double> matrix = csr_from<double>(tensor).value();
  EXPECT_EQ(matrix.columns, 12);
  EXPECT_THAT(matrix.column_of.view(), ElementsAre(4, 11));
  EXPECT_THAT(matrix.values.view(), ElementsAre(6, 5));
  tensor.extents = {2, 1 << 20, 1 << 20};
  EXPECT_EQ(csr_from<double>(tensor).error().code, ErrorCode::kUnsupported);
}

TEST(CsrTest, ValuesHaveToFit) {
  Coordinates large;
  large.extents = {1, 1, 1};
  large.indices = {{{0}, {0}, {}}};
  large.values = {1e300};
  EXPECT_TRUE(csr_from<double>(large));
  EXPECT_EQ(csr_from<float>(large).error().message,
            "the value 1e+300 in row 1 is too large for f32");
}

TEST(CsrTest, ArraysAreCopiedWhereTheyAreInOrder) {
  const std::vector<std::int64_t> starts{0, 2, 2, 3};
  const std::vector<std::int64_t> columns{0, 4, 1};
  const std::vector<double> values{1, 2, 3};
  const auto copy = [&](std::int64_t rows, std::int64_t width) {
    return csr_from_arrays<double, std::int64_t>(rows, width, starts, columns, values);
  };
  const Csr<double> matrix = copy(3, 5).value();
  EXPECT_THAT(matrix.starts.view(), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(matrix.column_of.view(), ElementsAre(0, 4, 1));
  EXPECT_THAT(matrix.values.view(), ElementsAre(1, 2, 3));
  EXPECT_EQ(copy(3, 4).error().message, "row 0 has column 4 behind 0: columns rise, from 0 to 3");
  EXPECT_EQ(copy(2, 5).error().message, "a matrix of 2 x 5 cannot have 4 starts of rows");
  EXPECT_EQ(copy(3, std::int64_t{1} << 40U).error().code, ErrorCode::kUnsupported);
  const std::vector<float> ones{1, 1, 1};
  const auto narrow = [&](const std::vector<std::int32_t>& begins,
                          const std::vector<std::int32_t>& places) {
    return csr_from_arrays<float, std::int32_t>(2, 5, begins, places, ones);
  };
  EXPECT_TRUE(narrow({0, 1, 3}, {4, 0, 1}));
  EXPECT_EQ(narrow({0, 4, 3}, {0, 1, 2}).error().message,
            "row 0 goes from 0 to 4, and there are 3 non-zeros");
  EXPECT_EQ(narrow({0, 2, 3}, {1, 1, 2}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(narrow({0, 2, 3}, {-1, 1, 2}).error().message,
            "row 0 has column -1 first: columns rise, from 0 to 4");
  EXPECT_EQ(narrow({0, 1, 2}, {0, 1, 2}).error().message,
            "the rows go from 0 to 2, and there are 3 columns and 3 values");
}

TEST(CsrTest, TransposingSwapsRowsAndColumns) {
  constexpr std::uint64_t kSeed = 2;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool pool(3);
  for (int trial = 0; trial < 40; ++trial) {
    const Csr<float> matrix =
        csr_from<float>(
            random_coordinates(rng.between(1, 40), rng.between(1, 10), rng.below(400), rng))
            .value();
    Places wanted;
    for (const auto& [place, value] : checked_places_of(matrix)) {
      wanted[{place.second, place.first}] = value;
    }
    const Csr<float> swapped = transposed(matrix, pool).value();
    EXPECT_EQ(swapped.rows, matrix.columns);
    EXPECT_EQ(swapped.columns, matrix.rows);
    EXPECT_EQ(checked_places_of(swapped), wanted);
  }
}

}  // namespace
}  // namespace foretune::sparse
