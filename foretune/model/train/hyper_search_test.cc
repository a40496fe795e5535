#include "foretune/model/train/hyper_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "foretune/model/train/testing/training_samples.h"

namespace foretune {
namespace {

class HyperSearchTest : public testing::Test {
 protected:
  HyperSearchTest() : dataset_(dataset_of(24, 41, formula_ns)) {
    options_ = quick_options();
    options_.gbdt.trees = 15;
    options_.folds = 3;
  }
  Dataset dataset_;
  TrainOptions options_;
};

TEST_F(HyperSearchTest, FindsTheBestOfItsTrialsAndRepeats) {
  options_.gbdt.learning_rate = 0.001;  // whatever is drawn is better
  const auto found =
      search_hyper_parameters(dataset_, options_, {.trials = 9, .is_spent = nullptr});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->trials.size(), 10U);
  EXPECT_EQ(found->trials[0].gbdt.learning_rate, 0.001);
  EXPECT_EQ(found->trials[0].folds, 3U);
  EXPECT_EQ(std::count_if(found->trials.begin(), found->trials.end(),
                          [](const HyperTrial& trial) { return trial.folds == 1; }),
            6);
  const HyperTrial& best = found->trials[1];
  EXPECT_EQ(best.folds, 3U);
  EXPECT_GT(best.mean_efficiency, found->trials[0].mean_efficiency);
  EXPECT_EQ(found->best.gbdt.learning_rate, best.gbdt.learning_rate);
  EXPECT_EQ(found->best.gbdt.leaves, best.gbdt.leaves);
  EXPECT_EQ(found->best.weight_decay, best.weight_decay);
  EXPECT_EQ(found->best.gbdt.trees, options_.gbdt.trees) << "not searched";
  const auto again =
      search_hyper_parameters(dataset_, options_, {.trials = 9, .is_spent = nullptr});
  ASSERT_TRUE(again);
  for (std::size_t i = 0; i < found->trials.size(); ++i) {
    EXPECT_EQ(again->trials[i].gbdt.leaves, found->trials[i].gbdt.leaves);
    EXPECT_EQ(again->trials[i].mean_efficiency, found->trials[i].mean_efficiency);
  }
  options_.seed = 7;
  const auto other =
      search_hyper_parameters(dataset_, options_, {.trials = 9, .is_spent = nullptr});
  ASSERT_TRUE(other);
  EXPECT_NE(other->best.gbdt.learning_rate, found->best.gbdt.learning_rate);
}

TEST_F(HyperSearchTest, DrawsAreWithinTheirRanges) {
  const auto found =
      search_hyper_parameters(dataset_, options_, {.trials = 12, .is_spent = nullptr});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->trials.size(), 13U);
  for (std::size_t i = 1; i < found->trials.size(); ++i) {
    const HyperTrial& trial = found->trials[i];
    EXPECT_GE(trial.gbdt.leaves, 15U);
    EXPECT_LE(trial.gbdt.leaves, 255U);
    EXPECT_GE(trial.gbdt.learning_rate, 0.02);
    EXPECT_LE(trial.gbdt.learning_rate, 0.2);
    EXPECT_GE(trial.gbdt.feature_fraction, 0.4);
    EXPECT_LE(trial.gbdt.bagging_fraction, 1);
    EXPECT_LE(trial.weight_decay, 4);
  }
}

TEST_F(HyperSearchTest, ASpentBudgetLeavesWhatWasGiven) {
  int asked = 0;
  const auto found = search_hyper_parameters(
      dataset_, options_, {.trials = 100, .is_spent = [&] { return ++asked > 5; }});
  ASSERT_TRUE(found) << found.error().message;
  // Three folds of the options given, and the first fold of two trials.
  EXPECT_EQ(found->trials.size(), 3U);
  EXPECT_EQ(found->best.gbdt.leaves, options_.gbdt.leaves);
  const auto nothing =
      search_hyper_parameters(dataset_, options_, {.trials = 100, .is_spent = [] { return true; }});
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->trials.size(), 1U);
  EXPECT_EQ(nothing->best.gbdt.learning_rate, options_.gbdt.learning_rate);
}

TEST_F(HyperSearchTest, TakesEveryObjectiveAndTarget) {
  for (const TrainObjective objective : {TrainObjective::kLambdaRank, TrainObjective::kRegret}) {
    options_.objective = objective;
    const auto found =
        search_hyper_parameters(dataset_, options_, {.trials = 1, .is_spent = nullptr});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GT(found->trials[0].mean_efficiency, 0.7) << to_string(objective);
  }
  options_.objective = TrainObjective::kRegression;
  options_.target = Target::kTflops;
  const auto found =
      search_hyper_parameters(dataset_, options_, {.trials = 1, .is_spent = nullptr});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GT(found->trials[0].mean_efficiency, 0.7);
}

TEST_F(HyperSearchTest, RefusesWhatCannotBeSearched) {
  EXPECT_EQ(
      search_hyper_parameters(dataset_, options_, {.trials = 0, .is_spent = nullptr}).error().code,
      ErrorCode::kInvalidArgument);
  options_.folds = 0;
  EXPECT_EQ(search_hyper_parameters(dataset_, options_, {}).error().code,
            ErrorCode::kInvalidArgument);
  const Dataset single = dataset_of(1, 3, formula_ns);
  options_.folds = 5;
  EXPECT_EQ(search_hyper_parameters(single, options_, {}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(HyperSearchTest, CanBeStopped) {
  const auto result =
      search_hyper_parameters(dataset_, options_, {}, [](const TrainProgress&) { return false; });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace foretune
