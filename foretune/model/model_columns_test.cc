#include "foretune/model/model_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "foretune/model/model_file.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;

// A table that has columns and no values.
class NamedTable : public FeatureTable {
 public:
  std::string_view name() const override { return "table"; }
  Support supports(ProblemType, const ConfigSchema&) const override { return Support::yes(); }
  void problem_row(const Problem&, const Hardware&, std::span<double>) const override {}
  void config_row(std::span<const std::int32_t>, std::span<double>) const override {}
  void interaction_columns(const Problem&, const Hardware&, ConfigWords, std::span<double>,
                           std::size_t) const override {}
};

// A table of today, whose "b2" and "z" a second version added.
class Table final : public NamedTable {
 public:
  std::span<const FeatureInfo> columns() const override {
    static const std::array<FeatureInfo, 6> columns{
        {{"a", FeatureKind::kProblem, ""},
         {"b", FeatureKind::kProblem, ""},
         {.name = "b2", .kind = FeatureKind::kProblem, .description = "", .since = 2},
         {"c", FeatureKind::kConfig, ""},
         {"d", FeatureKind::kInteraction, ""},
         {.name = "z", .kind = FeatureKind::kInteraction, .description = "", .since = 2}}};
    return columns;
  }
};

Forest forest_of(std::uint32_t count, std::vector<std::uint32_t> features) {
  Forest forest;
  forest.feature_count = count;
  forest.feature = std::move(features);
  return forest;
}

TEST(ColumnMap, ModelsFromBeforeGoOnWithTheirColumns) {
  const Table table;
  EXPECT_TRUE(has_later_columns(table));
  const ColumnMap map = ColumnMap::create(table, {});
  EXPECT_FALSE(map.is_identity());
  Forest forest = forest_of(4, {0, 1, 2, 3});
  ASSERT_TRUE(map.apply(forest));
  EXPECT_THAT(forest.feature, ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(forest.feature_count, 6U);
  Model model;
  model.problem_range = {{1, 2}, {3, 4}};
  Network network;
  network.inputs = {{.column = 1}, {.column = 3}};
  ASSERT_TRUE(map.apply(model));
  ASSERT_TRUE(map.apply(network));
  EXPECT_THAT(model.problem_range, ElementsAre(std::pair(1.0, 2.0), std::pair(3.0, 4.0),
                                               std::pair(std::numeric_limits<double>::lowest(),
                                                         std::numeric_limits<double>::max())));
  EXPECT_EQ(network.inputs[0].column, 1);
  EXPECT_EQ(network.inputs[1].column, 4);
}

TEST(ColumnMap, ColumnsOfTodayStayWhereTheyAre) {
  const Table table;
  const std::vector<std::string> names{"a", "b", "b2", "c", "d", "z"};
  const ColumnMap map = ColumnMap::create(table, names);
  EXPECT_TRUE(map.is_identity());
  Forest forest = forest_of(6, {5, 0});
  ASSERT_TRUE(map.apply(forest));
  EXPECT_THAT(forest.feature, ElementsAre(5, 0));
}

TEST(ColumnMap, AColumnOfALaterVersionIsRefusedByItsNameWhereItIsUsed) {
  const Table table;
  const std::vector<std::string> names{"a", "b", "b2", "b3", "c", "d", "z"};
  const ColumnMap map = ColumnMap::create(table, names);
  Forest without = forest_of(7, {0, 6});
  ASSERT_TRUE(map.apply(without));
  EXPECT_THAT(without.feature, ElementsAre(0, 5));
  Forest with = forest_of(7, {3});
  const Status status = map.apply(with);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(status.error().message,
            "the model uses the column 'b3', which the feature table table does not have in this "
            "version");
  Forest damaged = forest_of(7, {7});
  EXPECT_EQ(map.apply(damaged).error().code, ErrorCode::kCorrupt);
}

TEST(ColumnMap, TheIdOfATableIsThatOfItsFirstColumns) {
  class First final : public NamedTable {
   public:
    std::span<const FeatureInfo> columns() const override {
      static const std::array<FeatureInfo, 4> columns{{{"a", FeatureKind::kProblem, ""},
                                                       {"b", FeatureKind::kProblem, ""},
                                                       {"c", FeatureKind::kConfig, ""},
                                                       {"d", FeatureKind::kInteraction, ""}}};
      return columns;
    }
  };
  EXPECT_EQ(feature_table_id(Table()), feature_table_id(First()));
  EXPECT_FALSE(has_later_columns(First()));
}

}  // namespace
}  // namespace foretune
