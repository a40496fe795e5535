#include "foretune/features/plain_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace foretune {
namespace {

constexpr std::array<std::string_view, 2> kBorders{"zero", "wrap"};

std::span<const ProblemField> fields() {
  static const std::array list{size_field("cells"), label_field("border", kBorders, 0, 2)};
  return list;
}

const std::array kDrawn{DrawnSize{.field = 0}};

ProblemTypeInfo type_named(std::string_view name) {
  ProblemTypeInfo type;
  type.schema = {.type = added_problem_type(name), .name = name, .version = 1, .fields = fields()};
  type.summary = "a type for tests";
  type.drawn_sizes = kDrawn;
  return type;
}

ConfigSchema plain_schema() {
  return {.name = "plain",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{.name = "block", .labels = {}}, {.name = "order", .labels = {"x", "y"}}}};
}

TEST(PlainTable, DescribesFieldsAndParametersAsTheyAre) {
  const ProblemTypeInfo type = type_named("plain_described");
  ASSERT_TRUE(register_problem_type(type));
  const auto table = make_plain_table("plain-test", type, plain_schema());
  std::vector<std::string_view> names;
  for (const FeatureInfo& column : table->columns()) {
    names.push_back(column.name);
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"log2_cells", "border", "config_log2_block",
                                                  "config_order", "log2_cells_over_block"}));
  EXPECT_TRUE(table->columns()[1].is_categorical);
  EXPECT_TRUE(table->columns()[3].is_categorical);
  const Problem problem = Problem::parse("plain_described cells=1023 border=wrap").value();
  const Config config{.schema = plain_schema().id(), .words = Config::Words({15, 1})};
  std::vector<double> row(table->columns().size());
  feature_row(*table, problem, {}, config, row);
  EXPECT_EQ(row, (std::vector<double>{10, 1, 4, 1, 6}));
  EXPECT_TRUE(table->supports(type.schema.type, plain_schema()));
  ConfigSchema other = plain_schema();
  other.version = 2;
  EXPECT_FALSE(table->supports(type.schema.type, other));
}

TEST(AddedRows, AreFoundAndNotAddedTwice) {
  const ProblemTypeInfo type = type_named("plain_added");
  EXPECT_EQ(find_problem_type("plain_added"), nullptr);
  ASSERT_TRUE(register_problem_type(type));
  ASSERT_NE(find_problem_type("plain_added"), nullptr);
  EXPECT_EQ(find_problem_type(added_problem_type("plain_added"))->schema.name, "plain_added");
  EXPECT_FALSE(register_problem_type(type));
  ASSERT_TRUE(register_feature_table(make_plain_table("plain-added", type, plain_schema())));
  EXPECT_EQ((*find_feature_table("plain-added"))->name(), "plain-added");
  const Status again =
      register_feature_table(make_plain_table("plain-added", type, plain_schema()));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
}

TEST(AddedRows, OfTypesThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(register_problem_type(type_named("gemm")));
  EXPECT_FALSE(register_problem_type(type_named("Two words")));
  ProblemTypeInfo type = type_named("plain_number");
  type.schema.type = ProblemType{77};
  EXPECT_FALSE(register_problem_type(type));
  static const std::array kWrong{
      ProblemField{.name = "cells", .labels = {}, .minimum = 4, .maximum = 2, .groups = {}}};
  type = type_named("plain_bounds");
  type.schema.fields = kWrong;
  EXPECT_FALSE(register_problem_type(type));
}

}  // namespace
}  // namespace foretune
