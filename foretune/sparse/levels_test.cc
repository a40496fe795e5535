#include "foretune/sparse/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kParts{LevelPart::kOuterRow, LevelPart::kInnerRow, LevelPart::kOuterColumn,
                            LevelPart::kInnerColumn};

LevelFormat format_of(std::array<int, kLevels> kinds, std::int32_t row_split = 4,
                      std::int32_t column_split = 4,
                      std::array<LevelPart, kLevels> parts = kParts) {
  LevelFormat format{.row_split = row_split, .column_split = column_split};
  for (std::size_t level = 0; level < kLevels; ++level) {
    format.levels[level] = {parts[level], static_cast<LevelKind>(kinds[level])};
  }
  return format;
}

// Walks the tree as the kinds define it, and lists the value of each place.
class Walker {
 public:
  explicit Walker(const LevelStorage<float>& storage) : storage_(storage) { walk(0, 0); }
  [[nodiscard]] const Places& places() const { return places_; }
  [[nodiscard]] std::size_t visits() const { return visits_; }

 private:
  void walk(std::size_t level, std::int64_t above) {
    if (level == kLevels) {
      visit(storage_.values[static_cast<std::size_t>(above)]);
      return;
    }
    const LevelArrays& arrays = storage_.levels[level];
    const Level& here = storage_.format.levels[level];
    const auto step = [&](std::int64_t position, std::int64_t coordinate) {
      coordinates_[static_cast<std::size_t>(here.part)] = coordinate;
      walk(level + 1, position);
    };
    switch (here.kind) {
      case LevelKind::kDense:
        for (std::int64_t c = 0; c < arrays.extent; ++c) {
          step(above * arrays.extent + c, c);
        }
        break;
      case LevelKind::kCompressed:
      case LevelKind::kCompressedRepeated:
        for (std::int64_t i = arrays.starts[static_cast<std::size_t>(above)];
             i < arrays.starts[static_cast<std::size_t>(above) + 1]; ++i) {
          step(i, arrays.coordinates[static_cast<std::size_t>(i)]);
        }
        break;
      case LevelKind::kSingleton:
      case LevelKind::kSingletonRepeated:
        step(above, arrays.coordinates[static_cast<std::size_t>(above)]);
        break;
    }
  }
  void visit(float value) {
    ++visits_;
    if (value == 0) {
      return;
    }
    const std::int64_t row = coordinates_[0] * storage_.format.row_split + coordinates_[1];
    const std::int64_t column = coordinates_[2] * storage_.format.column_split + coordinates_[3];
    EXPECT_LT(row, storage_.rows);
    EXPECT_LT(column, storage_.columns);
    EXPECT_TRUE((places_.try_emplace({row, column}, static_cast<double>(value)).second));
  }

  const LevelStorage<float>& storage_;
  std::array<std::int64_t, kLevels> coordinates_{};  // by LevelPart
  Places places_;
  std::size_t visits_ = 0;
};

int legal_formats(std::int32_t row_split, std::int32_t column_split) {
  int legal = 0;
  for (int code = 0; code < 625; ++code) {
    const LevelFormat format =
        format_of({code / 125, code / 25 % 5, code / 5 % 5, code % 5}, row_split, column_split);
    legal += can_store(format, 100, 100) ? 1 : 0;
  }
  return legal;
}

TEST(LevelsTest, TheTableOfKindsHasItsKnownSize) {
  // Counted independently: 78 of 625 with four levels, 9 of 25 with two.
  EXPECT_EQ(legal_formats(4, 4), 78);
  EXPECT_EQ(legal_formats(1, 1), 9);
}

TEST(LevelsTest, RefusesWithTheReason) {
  const auto reason = [](const LevelFormat& format) { return can_store(format, 100, 90).reason(); };
  EXPECT_EQ(reason(format_of({0, 0, 1, 0})), "");
  EXPECT_THAT(reason(format_of({0, 0, 1, 0}, 0)), HasSubstr("from 1 to 65536"));
  EXPECT_THAT(reason(format_of({2, 0, 1, 1})), HasSubstr("dense level cannot follow"));
  EXPECT_THAT(reason(format_of({3, 1, 1, 1})), HasSubstr("has to follow repeated"));
  EXPECT_THAT(reason(format_of({2, 3, 1, 1})), HasSubstr("has to be the last level"));
  EXPECT_THAT(reason(format_of({2, 4, 4, 4})), HasSubstr("cannot repeat its singletons"));
  EXPECT_THAT(reason(format_of({0, 2, 4, 1})), HasSubstr("below a dense level"));
  EXPECT_THAT(reason(format_of({0, 1, 0, 0}, 1)), HasSubstr("extent 1 is dense"));
  EXPECT_THAT(reason(format_of({0, 0, 1, 0}, 4, 4,
                               {LevelPart::kInnerRow, LevelPart::kOuterRow, LevelPart::kOuterColumn,
                                LevelPart::kInnerColumn})),
              HasSubstr("before its outer part"));
  EXPECT_THAT(reason(format_of({0, 0, 1, 0}, 4, 4,
                               {LevelPart::kOuterRow, LevelPart::kOuterRow, LevelPart::kOuterColumn,
                                LevelPart::kInnerColumn})),
              HasSubstr("twice"));
}

TEST(LevelsTest, KnownStoragesAreTrees) {
  Coordinates coordinates;
  coordinates.extents = {3, 4, 1};
  coordinates.indices = {{{0, 0, 2}, {1, 3, 0}, {}}};
  coordinates.values = {5, 6, 7};
  const Csr<float> matrix = csr_from<float>(coordinates).value();
  ThreadPool pool(1);
  const auto csr = pack_levels(matrix, format_of({0, 0, 1, 0}, 1, 1), {pool}).value();
  EXPECT_THAT(csr.levels[2].starts.view(), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(csr.levels[2].coordinates.view(), ElementsAre(1, 3, 0));
  EXPECT_THAT(csr.values.view(), ElementsAre(5, 6, 7));
  const auto coo = pack_levels(matrix, format_of({2, 0, 3, 0}, 1, 1), {pool}).value();
  EXPECT_THAT(coo.levels[0].starts.view(), ElementsAre(0, 3));
  EXPECT_THAT(coo.levels[0].coordinates.view(), ElementsAre(0, 0, 2));
  EXPECT_THAT(coo.levels[2].coordinates.view(), ElementsAre(1, 3, 0));
  const auto columns = pack_levels(matrix,
                                   format_of({1, 0, 1, 0}, 1, 1,
                                             {LevelPart::kOuterColumn, LevelPart::kInnerColumn,
                                              LevelPart::kOuterRow, LevelPart::kInnerRow}),
                                   {pool})
                           .value();
  EXPECT_THAT(columns.levels[0].coordinates.view(), ElementsAre(0, 1, 3));
  EXPECT_THAT(columns.values.view(), ElementsAre(7, 5, 6));
  const auto blocks = pack_levels(matrix,
                                  format_of({0, 1, 0, 0}, 2, 2,
                                            {LevelPart::kOuterRow, LevelPart::kOuterColumn,
                                             LevelPart::kInnerRow, LevelPart::kInnerColumn}),
                                  {pool})
                          .value();
  EXPECT_THAT(blocks.values.view(), ElementsAre(0, 5, 0, 0, 0, 6, 0, 0, 7, 0, 0, 0));
}

// Draws one of the legal formats for a matrix, with any order and any split.
LevelFormat random_format(const Csr<float>& matrix, Rng& rng) {
  while (true) {
    std::array<LevelPart, kLevels> parts = kParts;
    rng.shuffle(std::span<LevelPart>(parts));
    LevelFormat format = format_of({static_cast<int>(rng.below(5)), static_cast<int>(rng.below(5)),
                                    static_cast<int>(rng.below(5)), static_cast<int>(rng.below(5))},
                                   static_cast<std::int32_t>(rng.between(1, 9)),
                                   static_cast<std::int32_t>(rng.between(1, 9)), parts);
    for (Level& level : format.levels) {
      if (extent_of(format, level.part, matrix.rows, matrix.columns) == 1) {
        level.kind = LevelKind::kDense;
      }
    }
    if (can_store(format, matrix.rows, matrix.columns)) {
      return format;
    }
  }
}

TEST(LevelsTest, EveryFormatHoldsTheMatrix) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool one(1);
  ThreadPool two(2);
  for (int trial = 0; trial < 1500; ++trial) {
    SCOPED_TRACE(concat("trial ", trial));
    const Csr<float> matrix =
        csr_from<float>(random_matrix(trial % 50 == 0 ? 150 : 20, rng)).value();
    const LevelFormat format = random_format(matrix, rng);
    ThreadPool& pool = trial % 16 == 0 ? two : one;
    const auto storage = pack_levels(matrix, format, {pool}).value();
    const Walker walker(storage);
    ASSERT_EQ(walker.places(), places_of(matrix));
    ASSERT_EQ(walker.visits(), storage.values.size());
    const StorageSize size = count_levels(matrix.pattern(), format, pool).value();
    std::uint64_t bytes = storage.values.bytes();
    for (const LevelArrays& arrays : storage.levels) {
      bytes += arrays.starts.bytes() + arrays.coordinates.bytes();
    }
    ASSERT_EQ(bytes, size.bytes(sizeof(float)));
    ASSERT_EQ(storage.values.size(), size.values);
  }
}

// More non-zeros than are sorted in one step.
TEST(LevelsTest, ManyNonZerosAreSortedInSteps) {
  Coordinates coordinates;
  coordinates.extents = {3000, 1000, 1};
  Rng rng(5);
  for (std::int32_t i = 0; i < 60000; ++i) {
    coordinates.indices[0].push_back(static_cast<std::int32_t>(rng.below(3000)));
    coordinates.indices[1].push_back(static_cast<std::int32_t>(rng.below(1000)));
    coordinates.values.push_back(1);
  }
  const Csr<float> matrix = csr_from<float>(coordinates).value();
  ThreadPool pool(2);
  const auto storage = pack_levels(matrix,
                                   format_of({1, 1, 1, 1}, 16, 16,
                                             {LevelPart::kOuterRow, LevelPart::kOuterColumn,
                                              LevelPart::kInnerRow, LevelPart::kInnerColumn}),
                                   {pool})
                           .value();
  EXPECT_EQ(Walker(storage).places(), places_of(matrix));
}

TEST(LevelsTest, TreesThatAreTooLargeAreRefused) {
  ThreadPool pool(1);
  const Csr<float> small =
      csr_from<float>(
          Coordinates{.extents = {100, 100, 1}, .indices = {{{0}, {0}, {}}}, .values = {1}})
          .value();
  const auto refused = pack_levels(small, format_of({0, 0, 0, 0}), {pool, 1000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a tree of levels takes 40000 bytes, more than the limit of 1000");
}

}  // namespace
}  // namespace foretune::sparse
