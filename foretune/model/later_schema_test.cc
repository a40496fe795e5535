#include "foretune/model/later_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/features/expression_table.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

TEST(LaterSchema, MayOnlyAddLabelsBehindThoseItHas) {
  const ConfigSchema earlier{.name = "kernels", .parameters = {{"isa", {"a", "b"}}, {"mr", {}}}};
  EXPECT_TRUE(adds_labels_only(earlier, earlier));
  ConfigSchema later = earlier;
  later.parameters[0].labels.emplace_back("c");
  EXPECT_TRUE(adds_labels_only(later, earlier));
  EXPECT_FALSE(adds_labels_only(earlier, later));
  const auto changed = [&](auto change) {
    ConfigSchema other = later;
    change(other);
    return adds_labels_only(other, earlier);
  };
  EXPECT_FALSE(changed([](ConfigSchema& s) { s.name = "others"; }));
  EXPECT_FALSE(changed([](ConfigSchema& s) { s.version = 2; }));
  EXPECT_FALSE(changed([](ConfigSchema& s) { s.parameters.push_back({"nr", {}}); }));
  EXPECT_FALSE(changed([](ConfigSchema& s) { s.parameters[1].name = "rows"; }));
  EXPECT_FALSE(changed([](ConfigSchema& s) { s.parameters[1].labels = {"x"}; }));
  EXPECT_FALSE(changed(
      [](ConfigSchema& s) { std::swap(s.parameters[0].labels[0], s.parameters[0].labels[1]); }));
}

// The model of every kind stays whole: candidates, space and feature table.
TEST(LaterSchema, TheModelIsOneOfTheLaterSchema) {
  Rng rng(3);
  Model earlier = sample_model({.candidates = 20}, rng);
  ConfigSchema later = earlier.config_schema;
  ASSERT_TRUE(*with_later_schema(earlier, later) == earlier);
  // A schema with labels: the table of values is that of expressions.
  SpaceDefinition space = *SpaceDefinition::parse(earlier.space_text);
  space.schema.parameters[3].labels = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  ExpressionFeatures features{.name = "labelled",
                              .problem_type = earlier.problem_type,
                              .parameters = space.schema.parameters,
                              .columns = {}};
  for (const FeatureInfo& column : (*feature_table_of(earlier))->columns()) {
    features.columns.push_back({.name = std::string(column.name),
                                .expression = column.kind == FeatureKind::kProblem  ? "m"
                                              : column.kind == FeatureKind::kConfig ? "group_m"
                                                                                    : "m * group_m",
                                .description = "a test's"});
  }
  earlier.config_schema = space.schema;
  earlier.space_text = space.text();
  earlier.feature_table = features.name;
  earlier.feature_text = features.text();
  earlier.feature_table_id = feature_table_id(**kept_expression_table(earlier.feature_text));
  for (Config& config : earlier.pool) {
    config.schema = space.schema.id();
  }
  ASSERT_TRUE(check_model(earlier)) << check_model(earlier).error().message;
  later = space.schema;
  later.parameters[3].labels.emplace_back("j");
  const auto model = with_later_schema(earlier, later);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(check_model(*model)) << check_model(*model).error().message;
  EXPECT_TRUE(model->config_schema == later);
  const Problem problem = sample_gemm(rng);
  const auto before = score_configs(earlier, problem, earlier.pool);
  const auto after = score_configs(*model, problem, model->pool);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(*before, *after);
}

}  // namespace
}  // namespace foretune
