#include "foretune/sparse/coordinates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/formats/compressed.h"
#include "foretune/formats/gzip.h"

namespace foretune::sparse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kGeneral =
    "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 3\n1 1 1.5\n3 4 -2e3\n2 1 "
    "+7\n";

Coordinates read(const std::string& file) {
  auto out = read_coordinates(bytes_of(file));
  EXPECT_TRUE(out) << out.error().message;
  return out ? *std::move(out) : Coordinates();
}

std::string refusal(const std::string& file) {
  const auto out = read_coordinates(bytes_of(file));
  return out ? std::string() : out.error().message;
}

std::string market(const std::string& banner, const std::string& rest) {
  return concat("%%MatrixMarket matrix ", banner, "\n", rest);
}

template <class Number>
std::string raw(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

TEST(MatrixMarketTest, ReadsCoordinates) {
  const Coordinates matrix = read(kGeneral);
  EXPECT_THAT(matrix.extents, ElementsAre(3, 4, 1));
  EXPECT_THAT(matrix.indices[0], ElementsAre(0, 2, 1));
  EXPECT_THAT(matrix.indices[1], ElementsAre(0, 3, 0));
  EXPECT_THAT(matrix.values, ElementsAre(1.5, -2000, 7));
  EXPECT_FALSE(matrix.is_tensor);
}

TEST(MatrixMarketTest, AcceptsHowOthersWrite) {
  // Capitals, CR LF, tabs, blanks at both ends, Fortran's exponents, and no last line end.
  const Coordinates matrix = read(
      "%%MATRIXMARKET Matrix Coordinate Real General\r\n 2\t2  2 \r\n  1 1 1.5D+01\r\n2 2 2d0");
  EXPECT_THAT(matrix.values, ElementsAre(15, 2));
  EXPECT_THAT(read(market("coordinate integer general", "1 1 1\n1 1 -3\n")).values,
              ElementsAre(-3));
}

TEST(MatrixMarketTest, ExpandsSymmetricMatrices) {
  const Coordinates symmetric =
      read(market("coordinate real symmetric", "3 3 3\n1 1 1\n3 1 2\n3 2 3\n"));
  EXPECT_THAT(symmetric.indices[0], ElementsAre(0, 2, 0, 2, 1));
  EXPECT_THAT(symmetric.indices[1], ElementsAre(0, 0, 2, 1, 2));
  EXPECT_THAT(symmetric.values, ElementsAre(1, 2, 2, 3, 3));
  const Coordinates skew = read(market("coordinate real skew-symmetric", "2 2 1\n2 1 5\n"));
  EXPECT_THAT(skew.indices[0], ElementsAre(1, 0));
  EXPECT_THAT(skew.values, ElementsAre(5, -5));
}

TEST(MatrixMarketTest, ReadsPatterns) {
  const Coordinates pattern = read(market("coordinate pattern general", "2 3 2\n1 3\n2 1\n"));
  EXPECT_TRUE(pattern.is_pattern());
  EXPECT_THAT(pattern.values, IsEmpty());
  EXPECT_THAT(pattern.indices[1], ElementsAre(2, 0));
  EXPECT_EQ(read(market("coordinate pattern general", "2 3 0\n")).size(), 0U);
}

TEST(MatrixMarketTest, ReadsArraysByColumns) {
  const Coordinates general = read(market("array real general", "2 2\n1\n0\n3 4\n"));
  EXPECT_THAT(general.indices[0], ElementsAre(0, 0, 1));
  EXPECT_THAT(general.indices[1], ElementsAre(0, 1, 1));
  EXPECT_THAT(general.values, ElementsAre(1, 3, 4));
  const Coordinates symmetric = read(market("array integer symmetric", "2 2\n1\n2\n3\n"));
  EXPECT_THAT(symmetric.values, ElementsAre(1, 2, 2, 3));
  const Coordinates skew = read(market("array real skew-symmetric", "3 3\n1\n2\n3\n"));
  EXPECT_THAT(skew.values, ElementsAre(1, -1, 2, -2, 3, -3));
  EXPECT_EQ(read(market("array real skew-symmetric", "1 1\n")).size(), 0U);
}

TEST(MatrixMarketTest, RefusesWithTheReason) {
  EXPECT_EQ(refusal(market("coordinate complex general", "1 1 1\n1 1 1 0\n")),
            "the values are complex; real, integer and pattern are read");
  EXPECT_THAT(refusal(market("coordinate real hermitian", "1 1 0\n")), HasSubstr("hermitian"));
  EXPECT_THAT(refusal(market("coordinate real", "1 1 0\n")), HasSubstr("FORM VALUES SYMMETRY"));
  EXPECT_THAT(refusal(market("sparse real general", "")), HasSubstr("'coordinate' or 'array'"));
  EXPECT_THAT(refusal(market("array pattern general", "")), HasSubstr("cannot be an array"));
  EXPECT_THAT(refusal(market("coordinate pattern skew-symmetric", "")),
              HasSubstr("cannot be skew-symmetric"));
  EXPECT_THAT(refusal(market("coordinate real general", "")),
              HasSubstr("before the line of sizes"));
  EXPECT_EQ(refusal(market("coordinate real general", "2 2\n")),
            "line 2 is '2 2', not rows, columns and entries");
  EXPECT_THAT(refusal(market("coordinate real general", "0 2 0\n")), HasSubstr("extent 0"));
  EXPECT_THAT(refusal(market("coordinate real general", "2147483648 2 0\n")),
              HasSubstr("the largest one is"));
  EXPECT_THAT(refusal(market("coordinate real general", "2 2 -1\n")), HasSubstr("is -1"));
  EXPECT_THAT(refusal(market("coordinate real symmetric", "2 3 0\n")),
              HasSubstr("2 x 3 cannot be symmetric"));
  EXPECT_EQ(refusal(market("coordinate real general", "2 2 1\n1 3 1\n")),
            "line 3: row 1, column 3 lies outside of 2 x 2");
  EXPECT_THAT(refusal(market("coordinate real general", "2 2 1\n0 1 1\n")), HasSubstr("row 0"));
  for (const char* value : {"", "x", "1 2", "nan", "inf", "1e999", "1.5x", "0x1", "+-1", "--1"}) {
    EXPECT_THAT(refusal(market("coordinate real general", concat("2 2 1\n1 1 ", value, "\n"))),
                HasSubstr("a finite value"))
        << value;
  }
  EXPECT_EQ(refusal(market("coordinate real general", "2 2 3\n1 1 1\n")),
            "the file has 1 of 3 entries");
  EXPECT_EQ(refusal(market("coordinate real general", "2 2 1\n1 1 1\n2 2 1\n")),
            "line 4 follows the last of 1 entries");
  EXPECT_THAT(refusal(market("coordinate real skew-symmetric", "2 2 1\n1 1 1\n")),
              HasSubstr("diagonal"));
  EXPECT_EQ(refusal(market("array real general", "2 2\n1\n2\n3\n")),
            "the file ends in column 2 of 2");
  EXPECT_THAT(refusal(market("array real general", "1 1\n1\n2\n")), HasSubstr("the last element"));
}

TEST(FrosttTest, ReadsTensorsAndMatrices) {
  const Coordinates tensor = read("# a tensor\n1 2 3 0.5\n4 1 1 -1\n\n");
  EXPECT_TRUE(tensor.is_tensor);
  EXPECT_THAT(tensor.extents, ElementsAre(4, 2, 3));
  EXPECT_THAT(tensor.indices[2], ElementsAre(2, 0));
  EXPECT_THAT(tensor.values, ElementsAre(0.5, -1));
  const Coordinates matrix = read("10 20 1.0\n");
  EXPECT_FALSE(matrix.is_tensor);
  EXPECT_THAT(matrix.extents, ElementsAre(10, 20, 1));
}

TEST(FrosttTest, RefusesWithTheReason) {
  EXPECT_THAT(refusal("# nothing\n"), HasSubstr("no non-zeros"));
  EXPECT_THAT(refusal("1 2 3 4 5\n"), HasSubstr("line 1 has 5 numbers"));
  EXPECT_EQ(refusal("1 2 3 4\n1 2 4\n"), "line 2 is '1 2 4', not 3 indices and a finite value");
  EXPECT_THAT(refusal("1 0 1 4\n"), HasSubstr("the index 0 is not between 1 and"));
  EXPECT_THAT(refusal("1 268435457 1 4\n"), HasSubstr("268435456"));
}

TEST(AutosparseTest, ReadsPatternsAndValues) {
  const std::string pattern = raw<std::int32_t>({3, 4, 3, 0, 2, 2, 3, 3, 1, 0});
  const Coordinates without = read(pattern);
  EXPECT_THAT(without.extents, ElementsAre(3, 4, 1));
  EXPECT_THAT(without.indices[0], ElementsAre(0, 0, 2));
  EXPECT_THAT(without.indices[1], ElementsAre(3, 1, 0));
  EXPECT_TRUE(without.is_pattern());
  EXPECT_THAT(read(pattern + raw<float>({1, 2, 0.5F})).values, ElementsAre(1, 2, 0.5));
  EXPECT_EQ(read(raw<std::int32_t>({1, 1, 0, 0, 0})).size(), 0U);
}

TEST(AutosparseTest, RefusesWithTheReason) {
  const auto file = [](const std::vector<std::int32_t>& numbers) { return refusal(raw(numbers)); };
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("PNG"), HasSubstr("none of"));
  EXPECT_THAT(refusal("some text that is no matrix"), HasSubstr("neither MatrixMarket's nor"));
  EXPECT_THAT(file({3, 4, -1, 0}), HasSubstr("-1"));
  EXPECT_THAT(file({2, 2, 2, 0, 1}), HasSubstr("ends too early: 3 numbers were to come, 2 came"));
  EXPECT_THAT(file({2, 2, 1, 0, 0, 2, 0}), HasSubstr("do not rise from 0 to 1"));
  EXPECT_THAT(file({2, 2, 2, 0, 3, 2, 0, 1}), HasSubstr("do not rise"));
  EXPECT_THAT(file({1, 2, 1, 0, 1, 2}), HasSubstr("column 2 lies outside of 2 columns"));
  const std::string pattern = raw<std::int32_t>({1, 2, 2, 0, 2, 0, 1});
  EXPECT_THAT(refusal(pattern + "x"), HasSubstr("goes on"));
  EXPECT_THAT(refusal(pattern + raw<float>({1, 2, 3})), HasSubstr("goes on"));
  EXPECT_THAT(refusal(pattern + raw<float>({1})), HasSubstr("ends too early"));
  EXPECT_THAT(refusal(pattern + raw<float>({1, INFINITY})), HasSubstr("infinite"));
}

TEST(CoordinatesTest, RefusesCompressedFiles) {
  EXPECT_THAT(read_coordinates(formats::deflate_gzip(bytes_of(kGeneral))).error().message,
              HasSubstr("compressed"));
}

// Any bytes are read or refused; what is read lies inside of its extents.
TEST(CoordinatesTest, SurvivesMutations) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const std::vector<std::string> files{kGeneral, market("array real symmetric", "2 2\n1\n2\n3\n"),
                                       "# t\n1 2 3 0.5\n4 1 1 -1\n",
                                       raw<std::int32_t>({3, 4, 3, 0, 2, 2, 3, 3, 1, 0})};
  int read_count = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string file = files[rng.below(files.size())];
    for (std::uint64_t i = 1 + rng.below(3); i > 0; --i) {
      file[rng.below(file.size())] = static_cast<char>(
          rng.below(2) == 0 ? rng.below(256) : "0123456789 \n+-.%#ed"[rng.below(19)]);
    }
    const auto matrix = read_coordinates(bytes_of(file));
    if (!matrix) {
      ASSERT_NE(matrix.error().message, "");
      continue;
    }
    ++read_count;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      ASSERT_EQ(matrix->indices[axis].size(), axis == 2 && !matrix->is_tensor ? 0 : matrix->size());
      for (const std::int32_t index : matrix->indices[axis]) {
        ASSERT_GE(index, 0);
        ASSERT_LT(index, matrix->extents[axis]);
      }
    }
  }
  EXPECT_GT(read_count, 1000);
}

TEST(PatternValueTest, IsTheSameForEveryone) {
  EXPECT_EQ(pattern_value(0, 0, 0), pattern_value(0, 0, 0));
  EXPECT_NE(pattern_value(1, 2, 0), pattern_value(2, 1, 0));
  EXPECT_NE(pattern_value(1, 2, 0), pattern_value(1, 2, 1));
  double sum = 0;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const double value = pattern_value(i / 100, i % 100, 0);
    ASSERT_GE(std::abs(value), 0.5);
    ASSERT_LT(std::abs(value), 1.5);
    ASSERT_EQ(value, static_cast<double>(static_cast<float>(value)));
    sum += value;
  }
  EXPECT_LT(std::abs(sum), 500);
}

TEST(CoordinatesTest, ReadsRealMatrices) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETUNE_SHARED_DATA_DIR) / "sparse" / "matrices";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no folder of shared test data with sparse matrices";
  }
  const std::string index = read_text_file(folder / "index.csv").value();
  const std::vector<std::string_view> lines = split(trim(index), '\n');
  std::map<std::string_view, std::size_t> columns;
  for (const std::string_view name : split(lines.front(), ',')) {
    columns.emplace(name, columns.size());
  }
  std::size_t matrices = 0;
  for (std::size_t line = 1; line < lines.size(); ++line) {
    const std::vector<std::string_view> cells = split(lines[line], ',');
    const auto number = [&](const char* column) {
      return parse_int(cells[columns.at(column)]).value();
    };
    const std::string name = concat(cells[columns.at("name")], ".mtx.gz");
    const auto matrix = read_coordinates(formats::read_maybe_compressed(folder / name).value());
    ASSERT_TRUE(matrix) << name << ": " << matrix.error().message;
    EXPECT_EQ(matrix->extents[0], number("rows")) << name;
    EXPECT_EQ(matrix->extents[1], number("cols")) << name;
    EXPECT_EQ(static_cast<std::int64_t>(matrix->size()), number("nnz")) << name;
    ++matrices;
  }
  EXPECT_GE(matrices, 50U);
}

}  // namespace
}  // namespace foretune::sparse
