#include "foretune/model/train/targets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "foretune/model/train/testing/training_samples.h"

namespace foretune::train_internal {
namespace {

TEST(Targets, NamesLeadBack) {
  for (const Target target : {Target::kRelativeLog, Target::kLog, Target::kTflops, Target::kLatency,
                              Target::kBandwidth}) {
    EXPECT_EQ(parse_target(to_string(target)), target);
  }
  EXPECT_FALSE(parse_target("speed"));
  for (const TrainObjective objective : {TrainObjective::kRegression, TrainObjective::kLambdaRank,
                                         TrainObjective::kRegret, TrainObjective::kAuto}) {
    EXPECT_EQ(parse_objective(to_string(objective)), objective);
  }
  EXPECT_FALSE(parse_objective("rank"));
}

class LearnedValues : public testing::Test {
 protected:
  LearnedValues() : dataset_(tile_header()) {
    // 2 * 100 * 200 * 50 = 2e6 operations; (100 * 50 + 50 * 200 + 100 * 200) * 2 = 70,000 bytes.
    add(dataset_, shape(100, 200, 50), tile(16, 16), 1000);
    add(dataset_, shape(100, 200, 50), tile(16, 32), 2000, Outcome::kCensored);
    set_ = make_training_set(dataset_, *find_feature_table("gemm-triton").value(), 0).value();
  }
  [[nodiscard]] float first(Target target, bool log_transform) const {
    return learned_values(dataset_, set_, target, log_transform)->value.at(0);
  }
  Dataset dataset_;
  TrainingSet set_;
};

TEST_F(LearnedValues, AreInTheUnitsOfTheirTarget) {
  EXPECT_FLOAT_EQ(first(Target::kTflops, false), 2);
  EXPECT_FLOAT_EQ(first(Target::kBandwidth, false), 70);
  EXPECT_FLOAT_EQ(first(Target::kLatency, false), 1e-3F);
  EXPECT_FLOAT_EQ(first(Target::kTflops, true), std::log(3.0F));
  EXPECT_FLOAT_EQ(first(Target::kBandwidth, true), std::log(71.0F));
  EXPECT_FLOAT_EQ(first(Target::kLatency, true), std::log1p(1e-3F));
  EXPECT_FLOAT_EQ(first(Target::kLog, true), std::log(1000.0F));
  EXPECT_FLOAT_EQ(first(Target::kRelativeLog, true), 0);
  EXPECT_TRUE(learned_values(dataset_, set_, Target::kTflops, true)->larger_is_better);
  EXPECT_FALSE(learned_values(dataset_, set_, Target::kLatency, true)->larger_is_better);
  EXPECT_FALSE(learned_values(dataset_, set_, Target::kLog, true)->log1p);
}

TEST(ScoreFactor, IsTheSlopeWithinProblems) {
  TrainingSet set;
  Learned learned{.target = Target::kTflops, .value = {}, .log1p = false, .larger_is_better = true};
  std::vector<double> predictions;
  for (std::uint32_t problem = 0; problem < 3; ++problem) {
    for (int i = 0; i < 4; ++i) {
      set.problem.push_back(problem);
      set.row.push_back(static_cast<RowIndex>(set.row.size()));
      set.log_time.push_back(static_cast<float>(problem * 10 + i));
      set.censored.push_back(false);
      predictions.push_back(-0.5 * i + 3.0 * problem);
    }
  }
  EXPECT_NEAR(score_factor(set, learned, TrainObjective::kRegression, predictions), -2, 1e-6);
  // Rows without a prediction and bounds say nothing.
  predictions[0] = std::nan("");
  set.censored[5] = true;
  predictions[5] = 1e6;
  EXPECT_NEAR(score_factor(set, learned, TrainObjective::kRegression, predictions), -2, 1e-6);
  // Logarithms of time are scores as they are, but those of a ranking have no unit.
  learned.target = Target::kLog;
  EXPECT_EQ(score_factor(set, learned, TrainObjective::kRegression, predictions), 1);
  EXPECT_NEAR(score_factor(set, learned, TrainObjective::kLambdaRank, predictions), -2, 1e-6);
}

TEST(ScoreFactor, NeverTurnsTheOrderAround) {
  TrainingSet set;
  set.problem = {0, 0};
  set.row = {0, 1};
  set.log_time = {1, 2};
  set.censored = {false, false};
  Learned learned{.target = Target::kTflops, .value = {}, .log1p = true, .larger_is_better = true};
  EXPECT_EQ(score_factor(set, learned, TrainObjective::kRegression, std::vector<double>{1, 2}), -1);
  EXPECT_EQ(score_factor(set, learned, TrainObjective::kRegression, std::vector<double>{1, 1}), -1);
  learned = {.target = Target::kLatency, .value = {}, .log1p = true, .larger_is_better = false};
  EXPECT_EQ(score_factor(set, learned, TrainObjective::kRegression, std::vector<double>{2, 1}), 1);
}

}  // namespace
}  // namespace foretune::train_internal
