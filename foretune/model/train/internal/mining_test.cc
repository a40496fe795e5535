#include "foretune/model/train/internal/mining.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/testing/training_samples.h"

namespace foretune::train_internal {
namespace {

TEST(Mining, RegretIsThatOfTheRowWithTheLowestScore) {
  TrainingSet set;
  set.problem = {0, 0, 1, 1, 2};
  set.relative = {0, std::log(2.0F), 0, 1, 0};
  const std::vector<std::uint32_t> rows{0, 1, 2, 3};
  const auto regret = regrets(set, rows, std::vector<double>{5, 4, 1, 2});
  ASSERT_EQ(regret.size(), 2U) << "problem 2 is not among the rows";
  EXPECT_FLOAT_EQ(static_cast<float>(regret.at(0)), std::log(2.0F));
  EXPECT_EQ(regret.at(1), 0);
}

TEST(Mining, RaisesTheHardestAndKeepsTheMean) {
  std::vector<float> weight(6, 1.0F);
  const MiningOptions options{.rounds = 1, .hard_share = 0.25, .factor = 2, .most = 3};
  // Problem 5 is not trained on.
  const std::map<std::uint32_t, double> regret{{0, 0.0}, {1, 0.1}, {2, 0.9}, {3, 0.05}, {4, 0.02}};
  raise_hard(regret, options, weight);
  EXPECT_EQ(weight[5], 1.0F);
  EXPECT_FLOAT_EQ(weight[2] / weight[0], 2);
  EXPECT_FLOAT_EQ(weight[1] / weight[0], 2);
  EXPECT_FLOAT_EQ(weight[3], weight[0]);
  EXPECT_NEAR((weight[0] + weight[1] + weight[2] + weight[3] + weight[4]) / 5, 1, 1e-6);
  // A second round multiplies, but no further than `most`.
  raise_hard(regret, options, weight);
  EXPECT_FLOAT_EQ(weight[2] / weight[0], 3);
}

TEST(Mining, NothingIsHardWhereEveryPickIsTheBest) {
  std::vector<float> weight(3, 1.0F);
  raise_hard({{0, 0.0}, {1, 0.0}, {2, 0.0}}, {.rounds = 1}, weight);
  EXPECT_EQ(weight, std::vector<float>(3, 1.0F));
}

// The times of every fourth problem follow another law, which is hard to learn from few examples.
double two_laws_ns(const Problem& problem, const Config& config) {
  const bool is_odd = GemmProblem::from(problem)->k() % 256 == 0;
  return formula_ns(problem, config) * (is_odd ? 1 + config.words[0] / 64.0 : 1);
}

TEST(Mining, FoldsAreHeldOutOfTheMiningToo) {
  // The effect of mining on one fold's predictions must not depend on the times of that fold.
  const Dataset dataset = dataset_of(24, 12, two_laws_ns);
  TrainOptions options = quick_options();
  // So few trees that early stopping keeps all of them in every run. Their number is chosen on
  // folds 0 and 1, with the rows of fold 2 in training.
  options.gbdt.trees = 5;
  options.mining.rounds = 2;
  options.folds = 3;
  const auto before = train_gbdt(dataset, options);
  ASSERT_TRUE(before) << before.error().message;
  Dataset changed(dataset.header());
  Rng rng(1);
  for (const Dataset::Row& row : dataset.rows()) {
    const bool is_held_out = before->fold_of_problem[row.problem] == 2;
    add(changed, dataset.problems()[row.problem], dataset.configs()[row.config],
        static_cast<double>(row.time_ns) * (is_held_out ? std::exp(rng.uniform()) : 1));
  }
  const auto after = train_gbdt(changed, options);
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(forests_of(before->model)[0].trees.size(), forests_of(after->model)[0].trees.size());
  ASSERT_EQ(before->fold_of_problem, after->fold_of_problem);
  EXPECT_NE(forests_of(before->model), forests_of(after->model));
  std::size_t compared = 0;
  for (RowIndex row = 0; row < dataset.size(); ++row) {
    if (before->fold_of_problem[dataset.rows()[row].problem] == 2) {
      ASSERT_EQ(before->held_out_scores[row], after->held_out_scores[row]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0U);
}

TEST(Mining, ChangesTheModelAndStaysReproducible) {
  const Dataset dataset = dataset_of(20, 13, two_laws_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 30;
  options.folds = 2;
  const auto plain = train_gbdt(dataset, options);
  options.mining.rounds = 1;
  const auto mined = train_gbdt(dataset, options);
  const auto again = train_gbdt(dataset, options);
  ASSERT_TRUE(plain && mined && again);
  EXPECT_NE(forests_of(plain->model), forests_of(mined->model));
  EXPECT_EQ(model_bytes(mined->model), model_bytes(again->model));
  options.mining.folds = 1;
  EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune::train_internal
