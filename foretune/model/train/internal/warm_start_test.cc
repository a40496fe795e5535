#include "foretune/model/train/internal/warm_start.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

TrainOptions few_trees() {
  TrainOptions options = quick_options();
  options.folds = 0;
  options.gbdt.trees = 20;
  options.warm_start_trees = 30;
  return options;
}

double squared_error(const Dataset& dataset, const TrainResult& result) {
  const FeatureTable& table = *find_feature_table("gemm-triton").value();
  const auto set = train_internal::make_training_set(dataset, table, 0).value();
  double sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::span<const double> row =
        std::span(set.matrix.values).subspan(i * set.matrix.columns, set.matrix.columns);
    const double error =
        predict_reference(forests_of(result.model)[0], row) - static_cast<double>(set.relative[i]);
    sum += error * error;
  }
  return sum / static_cast<double>(set.size());
}

TEST(WarmStart, AddsTreesToTheOldOnesAndLearnsOn) {
  const Dataset dataset = dataset_of(20, 21, formula_ns);
  TrainOptions options = few_trees();
  const auto first = train_gbdt(dataset, options);
  ASSERT_TRUE(first) << first.error().message;
  options.warm_start = &first->model;
  const auto second = train_gbdt(dataset, options);
  ASSERT_TRUE(second) << second.error().message;
  const Forest& before = forests_of(first->model)[0];
  const Forest& after = forests_of(second->model)[0];
  EXPECT_EQ(after.trees.size(), before.trees.size() + 30);
  EXPECT_TRUE(
      std::equal(before.leaf_value.begin(), before.leaf_value.end(), after.leaf_value.begin()));
  EXPECT_LT(squared_error(dataset, *second), 0.7 * squared_error(dataset, *first));
  EXPECT_NE(second->model.card_json.find("warm_start"), std::string::npos);
  const auto again = train_gbdt(dataset, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(model_bytes(second->model), model_bytes(again->model));
}

TEST(WarmStart, GoesOnFromScoresThatWereScaled) {
  const Dataset dataset = dataset_of(20, 22, formula_ns);
  for (const bool is_rank : {false, true}) {
    TrainOptions options = few_trees();
    options.target = is_rank ? Target::kRelativeLog : Target::kTflops;
    options.objective = is_rank ? TrainObjective::kLambdaRank : TrainObjective::kRegression;
    const auto first = train_gbdt(dataset, options);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_LT(first->score_factor, 0);
    options.warm_start = &first->model;
    const auto second = train_gbdt(dataset, options);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_LT(second->score_factor, 0);
    const Forest& before = first->predictor.forest;
    const Forest& after = second->predictor.forest;
    ASSERT_GT(after.leaf_value.size(), before.leaf_value.size());
    for (std::size_t leaf = 0; leaf < before.leaf_value.size(); ++leaf) {
      ASSERT_NEAR(after.leaf_value[leaf], before.leaf_value[leaf], 1e-12);
    }
  }
}

TEST(WarmStart, GoesOnWithTheObjectiveOfTheModelUnlessToldOtherwise) {
  const Dataset dataset = dataset_of(6, 25, formula_ns);
  for (const TrainObjective objective : {TrainObjective::kRegression, TrainObjective::kRegret}) {
    TrainOptions options = few_trees();
    options.objective = objective;
    const auto first = train_gbdt(dataset, options);
    ASSERT_TRUE(first);
    options.objective = TrainObjective::kAuto;
    options.warm_start = &first->model;
    const auto second = train_gbdt(dataset, options);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(train_internal::objective_of(second->model), objective);
  }
}

TEST(WarmStart, RefusesEverythingThatDiffersAndNamesIt) {
  const Dataset dataset = dataset_of(6, 23, formula_ns);
  const auto first = train_gbdt(dataset, few_trees());
  ASSERT_TRUE(first);
  const auto refusal = [&](const auto& change) {
    Model model = first->model;
    TrainOptions options = few_trees();
    change(model, options);
    options.warm_start = &model;
    const auto result = train_gbdt(dataset, options);
    EXPECT_FALSE(result.has_value());
    if (result) {
      return std::string();
    }
    EXPECT_EQ(result.error().code, ErrorCode::kMismatch);
    return result.error().message;
  };
  using Options = TrainOptions;
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal([](Model& model, Options&) { model.family = "other"; }), "family 'other'");
  has(refusal([](Model& model, Options&) { model.config_schema.version = 9; }), "config schema");
  has(refusal([](Model& model, Options&) { model.feature_table = "gemm-cpu"; }), "feature table");
  has(refusal([](Model& model, Options&) { model.feature_table_id ^= 1; }), "names of the columns");
  has(refusal([](Model& model, Options&) { model.problem_schema ^= 1; }), "problems");
  has(refusal([](Model&, Options& options) { options.target = Target::kTflops; }),
      "target 'relative-log' against 'tflops'");
  has(refusal([](Model&, Options& options) { options.target = Target::kTflops; }), "logarithm");
  has(refusal([](Model&, Options& options) { options.objective = TrainObjective::kRegression; }),
      "objective");
  has(refusal([](Model&, Options& options) { options.forests = 2; }), "1 forests against 2");
  const std::string both = refusal([](Model& model, Options& options) {
    model.family = "other";
    options.forests = 3;
  });
  has(both, "family");
  has(both, "forests");
}

TEST(WarmStart, RefusesADamagedCardAndAChoiceOfTargets) {
  const Dataset dataset = dataset_of(6, 24, formula_ns);
  const auto first = train_gbdt(dataset, few_trees());
  ASSERT_TRUE(first);
  Model model = first->model;
  TrainOptions options = few_trees();
  options.warm_start = &model;
  for (const char* card : {"", "[]", R"({"score_factor": 0})"}) {
    model.card_json = card;
    EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kCorrupt) << card;
  }
  model = first->model;
  options.choose_target = true;
  EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune
