// The feature table of launches of any kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/kernel/kernel.h"

namespace foretune {
namespace {

ConfigSchema schema_of(std::size_t parameters) {
  ConfigSchema schema{.name = "any", .parameters = {}};
  for (std::size_t i = 0; i < parameters; ++i) {
    schema.parameters.push_back({concat("p", i), {}});
  }
  return schema;
}

double value_of(const FeatureTable& table, std::string_view column, const Problem& problem,
                const std::vector<std::int32_t>& words) {
  Config config;
  for (const std::int32_t word : words) {
    config.words.push_back(word);
  }
  std::vector<double> row(table.columns().size());
  feature_row(table, problem, Hardware(), config, row);
  return row[find_columns(table, {{column}}).value()[0]];
}

TEST(KernelLaunch, DescribesConfigsOfAnyParameters) {
  const FeatureTable& table = **find_feature_table("kernel-launch");
  for (const std::size_t count : {1U, 6U, 40U}) {
    EXPECT_TRUE(table.supports(kKernelProblem, schema_of(count)));
    EXPECT_FALSE(table.supports(kGemmProblem, schema_of(count)));
  }
  ConfigSchema sequence;
  sequence.kind = SchemaKind::kSequence;
  EXPECT_FALSE(table.supports(kKernelProblem, sequence));
}

TEST(KernelLaunch, ReadsSizesAndParametersByTheirPlaces) {
  const FeatureTable& table = **find_feature_table("kernel-launch");
  const Problem problem = Problem::parse("kernel variant=259 size_1=1023 size_2=-7").value();
  EXPECT_EQ(value_of(table, "variant", problem, {63}), 3);
  EXPECT_EQ(value_of(table, "log2_size_1", problem, {63}), 10);
  EXPECT_EQ(value_of(table, "log2_size_2", problem, {63}), -3);
  EXPECT_EQ(value_of(table, "log2_size_8", problem, {63}), 0);
  EXPECT_EQ(value_of(table, "log2_parameter_1", problem, {63}), 6);
  EXPECT_EQ(value_of(table, "log2_parameter_2", problem, {63}), 0);
  EXPECT_EQ(value_of(table, "log2_size_1_over_parameter_1", problem, {63}), 4);
  EXPECT_EQ(value_of(table, "log2_size_1_over_parameter_8", problem, {63}), 10);
  EXPECT_EQ(value_of(table, "log2_parameter_16", problem, std::vector<std::int32_t>(40, 1)), 1);
}

}  // namespace
}  // namespace foretune
