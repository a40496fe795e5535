#include "foretune/features/expression_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExpressionFeatures tiles() {
  return {.name = "tiles",
          .problem_type = kGemmProblem,
          .parameters = {{.name = "block", .labels = {}}, {.name = "order", .labels = {"x", "y"}}},
          .columns = {{.name = "waves", .expression = "ceil_div(m, block) / hw.cores"},
                      {.name = "order", .expression = "order", .is_categorical = true},
                      {.name = "log2_m", .expression = "log2(m)", .description = "rows # log2"},
                      {.name = "share", .expression = "block / 3"},
                      {.name = "infinite", .expression = "log2(0) + hw.l2_bytes / 0"}}};
}

ConfigSchema schema() { return {.name = "any", .parameters = tiles().parameters}; }

std::string refusal(const ExpressionFeatures& features) {
  const auto table = make_expression_table(features);
  EXPECT_FALSE(table);
  return table ? "" : table.error().message;
}

std::string refusal_after(void (*edit)(ExpressionFeatures& features)) {
  ExpressionFeatures features = tiles();
  edit(features);
  return refusal(features);
}

TEST(ExpressionTable, ComputesInRealNumbersInTheOrderOfKinds) {
  const auto table = make_expression_table(tiles()).value();
  std::vector<std::string_view> names;
  for (const FeatureInfo& column : table->columns()) {
    names.push_back(column.name);
  }
  EXPECT_THAT(names, ElementsAre("log2_m", "infinite", "order", "share", "waves"));
  EXPECT_EQ(table->columns()[0].kind, FeatureKind::kProblem);
  EXPECT_EQ(table->columns()[0].description, "rows # log2");
  EXPECT_EQ(table->columns()[2].kind, FeatureKind::kConfig);
  EXPECT_TRUE(table->columns()[2].is_categorical);
  EXPECT_EQ(table->columns()[4].kind, FeatureKind::kInteraction);
  EXPECT_EQ(table->columns()[4].description, "ceil_div(m, block) / hw.cores");
  Hardware hardware;
  hardware.set(HardwareValue::kCores, 4);
  const Problem problem = Problem::parse("gemm m=100 n=2 k=3").value();
  std::vector<double> row(5);
  feature_row(*table, problem, hardware, {.schema = 0, .words = Config::Words({16, 1})}, row);
  EXPECT_EQ(row, (std::vector<double>{std::log2(100), 0, 1, 16.0 / 3, 7.0 / 4}));
}

TEST(ExpressionTable, DescribesConfigsOfItsParametersOnly) {
  const auto table = make_expression_table(tiles()).value();
  EXPECT_TRUE(table->supports(kGemmProblem, schema()));
  EXPECT_FALSE(table->supports(ProblemType{2}, schema()));
  ConfigSchema other = schema();
  std::swap(other.parameters[1].labels[0], other.parameters[1].labels[1]);
  EXPECT_FALSE(table->supports(kGemmProblem, other));
}

TEST(ExpressionTable, TextReadsBackAndIdentifiesTheTable) {
  const ExpressionFeatures features = tiles();
  EXPECT_EQ(ExpressionFeatures::parse(features.text()).value(), features);
  const FeatureTable* const kept = kept_expression_table(features.text()).value();
  EXPECT_EQ(kept, kept_expression_table(features.text()).value());
  EXPECT_EQ(kept->definition(), features.text());
  ExpressionFeatures other = features;
  other.columns[0].expression = "ceil_div(n, block) / hw.cores";
  const FeatureTable* const second = kept_expression_table(other.text()).value();
  EXPECT_NE(feature_table_id(*kept), feature_table_id(*second));
  EXPECT_FALSE(find_feature_table("tiles"));
}

TEST(ExpressionTable, RefusalsNameTheColumn) {
  EXPECT_THAT(refusal_after([](auto& features) { features.columns[1].expression = "tile * 2"; }),
              HasSubstr("the column order: expression 'tile * 2', position 1"));
  EXPECT_THAT(refusal_after([](auto& features) { features.columns[1].name = "waves"; }),
              HasSubstr("has the column 'waves' twice"));
  EXPECT_THAT(refusal_after([](auto& features) { features.columns[1].description = "two\nlines"; }),
              HasSubstr("line break"));
  EXPECT_THAT(refusal_after([](auto& features) { features.name = "two words"; }),
              HasSubstr("a name with blanks"));
  EXPECT_THAT(refusal_after([](auto& features) { features.columns.clear(); }),
              HasSubstr("1 to 4096 columns"));
  for (const char* text : {"", "column a m # m", "space tiles 1 gemm\ncolumn a m",
                           "space tiles 2 gemm\ncolumn a m # m",
                           "space tiles 1 gemm\nparameter block [] 1 2\ncolumn a m # m"}) {
    EXPECT_FALSE(kept_expression_table(text)) << text;
  }
}

}  // namespace
}  // namespace foretune
