// Each objective and each target learns a formula, and its scores mean the same.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/internal/boosting.h"
#include "foretune/model/train/testing/training_samples.h"

namespace foretune {
namespace {

double trained_efficiency(const TrainResult& result) {
  for (const auto& [name, value] : result.metrics) {
    if (name == "mean_efficiency") {
      return value;
    }
  }
  return 0;
}

class EveryObjective : public testing::TestWithParam<TrainObjective> {};

TEST_P(EveryObjective, LearnsAFormulaAndRepeats) {
  const Dataset dataset = dataset_of(50, 3, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 100;
  options.objective = GetParam();
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(trained_efficiency(*result), 0.93);
  EXPECT_GT(result->score_factor, GetParam() == TrainObjective::kLambdaRank ? -100 : 0);
  // Scores are logarithms of time up to a constant per problem, whatever was minimised.
  std::map<std::uint32_t, std::pair<std::vector<double>, std::vector<double>>> by_problem;
  for (RowIndex row = 0; row < dataset.size(); ++row) {
    auto& [scores, logs] = by_problem[dataset.rows()[row].problem];
    scores.push_back(result->held_out_scores[row]);
    logs.push_back(std::log(static_cast<double>(dataset.rows()[row].time_ns)));
  }
  std::vector<double> slopes;
  for (auto& [problem, both] : by_problem) {
    const double mean_score = mean(both.first);
    const double mean_log = mean(both.second);
    double products = 0;
    double squares = 0;
    for (std::size_t i = 0; i < both.first.size(); ++i) {
      products += (both.first[i] - mean_score) * (both.second[i] - mean_log);
      squares += (both.first[i] - mean_score) * (both.first[i] - mean_score);
    }
    slopes.push_back(products / squares);
  }
  EXPECT_NEAR(median(slopes), 1, 0.35);
  EXPECT_EQ(std::isnan(result->folds[0].metrics.r2), GetParam() == TrainObjective::kLambdaRank);
  const auto again = train_gbdt(dataset, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(model_bytes(result->model), model_bytes(again->model));
  EXPECT_NE(result->model.card_json.find(to_string(GetParam())), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Objectives, EveryObjective,
                         testing::Values(TrainObjective::kRegression, TrainObjective::kLambdaRank,
                                         TrainObjective::kRegret),
                         [](const auto& one) { return std::string(to_string(one.param)); });

struct TargetCase {
  Target target;
  bool log_transform;
};

class EveryTarget : public testing::TestWithParam<TargetCase> {};

TEST_P(EveryTarget, LowerScoresAreFasterAndTheModelSaysWhatItLearned) {
  const Dataset dataset = dataset_of(50, 4, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 100;
  options.target = GetParam().target;
  options.log_transform = GetParam().log_transform;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->model.target, to_string(GetParam().target));
  // Without logarithms the largest problems count alone, and other picks suffer.
  EXPECT_GT(trained_efficiency(*result), GetParam().log_transform ? 0.9 : 0.5);
  const auto read = parse_model(model_bytes(result->model));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(result->folds.size(), 5U);
  EXPECT_GT(result->folds[0].metrics.r2, 0.5);
  EXPECT_EQ(result->folds[0].train_groups + result->folds[0].held_out_groups, 50U);
  EXPECT_EQ(result->folds[0].metrics.rows, 250U);
  // The model's scores are the predictor's, by the factor.
  std::vector<double> row(result->predictor.feature_names.size(), 10.0);
  EXPECT_NEAR(predict_reference(forests_of(result->model)[0], row),
              result->score_factor * predict(result->predictor, row), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, EveryTarget,
    testing::Values(TargetCase{Target::kRelativeLog, true}, TargetCase{Target::kLog, true},
                    TargetCase{Target::kTflops, true}, TargetCase{Target::kTflops, false},
                    TargetCase{Target::kLatency, true}, TargetCase{Target::kBandwidth, true}),
    [](const auto& one) {
      std::string name(to_string(one.param.target));
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name + (one.param.log_transform ? "" : "Plain");
    });

TEST(Objectives, GradesFallFromThirtyToNothingAtTwiceTheTime) {
  EXPECT_EQ(train_internal::relevance_grade(0), 30);
  EXPECT_EQ(train_internal::relevance_grade(-0.1), 30) << "faster than the best: measured again";
  EXPECT_EQ(train_internal::relevance_grade(std::log(4.0 / 3)), 15);
  EXPECT_EQ(train_internal::relevance_grade(std::log(2.0)), 0);
  EXPECT_EQ(train_internal::relevance_grade(10), 0);
}

TEST(Objectives, AllTiesAndSingleConfigsAreLearnedFromWithoutHarm) {
  Dataset dataset = dataset_of(12, 5, [](const Problem&, const Config&) { return 1000.0; });
  add(dataset, shape(8, 8, 8), tile(16, 16), 500);
  for (const TrainObjective objective :
       {TrainObjective::kRegression, TrainObjective::kLambdaRank, TrainObjective::kRegret}) {
    TrainOptions options = quick_options();
    options.gbdt.trees = 10;
    options.folds = 2;
    options.objective = objective;
    const auto result = train_gbdt(dataset, options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(trained_efficiency(*result), 1) << to_string(objective);
  }
}

TEST(Objectives, AutoIsRegretWhereTheTargetAllowsIt) {
  TrainOptions options;
  EXPECT_EQ(settled_objective(options), TrainObjective::kRegret);
  options.choose_target = true;
  EXPECT_EQ(settled_objective(options), TrainObjective::kRegression);
  options.choose_target = false;
  for (const Target target : {Target::kLog, Target::kTflops}) {
    options.target = target;
    EXPECT_EQ(settled_objective(options), TrainObjective::kRegression);
  }
  options.objective = TrainObjective::kLambdaRank;
  EXPECT_EQ(settled_objective(options), TrainObjective::kLambdaRank) << "what is asked for";
  const Dataset dataset = dataset_of(5, 6, formula_ns);
  options = quick_options();
  const auto by_default = train_gbdt(dataset, options);
  options.objective = TrainObjective::kRegret;
  const auto by_regret = train_gbdt(dataset, options);
  ASSERT_TRUE(by_default && by_regret);
  EXPECT_EQ(model_bytes(by_default->model), model_bytes(by_regret->model));
}

TEST(Objectives, RefusesWhatDoesNotFit) {
  const Dataset dataset = dataset_of(5, 6, formula_ns);
  TrainOptions options = quick_options();
  for (const TrainObjective objective : {TrainObjective::kRegret, TrainObjective::kLambdaRank}) {
    options.objective = objective;
    for (const Target target : {Target::kTflops, Target::kLog}) {
      options.target = target;
      EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kInvalidArgument);
    }
  }
  options = quick_options();
  options.target = Target::kTflops;
  options.choose_target = true;
  EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kInvalidArgument);
}

TEST(Objectives, WithoutFiguresTheTreesAreCountedAllTheSame) {
  const Dataset dataset = dataset_of(30, 7, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 60;
  const auto with = train_gbdt(dataset, options);
  options.held_out = false;
  const auto without = train_gbdt(dataset, options);
  ASSERT_TRUE(with && without);
  EXPECT_TRUE(without->metrics.empty());
  EXPECT_TRUE(without->folds.empty());
  EXPECT_EQ(forests_of(without->model), forests_of(with->model));
}

}  // namespace
}  // namespace foretune
