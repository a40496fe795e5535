#include "foretune/base/prediction_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretune {
namespace {

using Values = std::vector<double>;

TEST(PredictionStatistics, EfficiencyIsOfTheBestPredicted) {
  EXPECT_DOUBLE_EQ(pick_efficiency(Values{4, 2, 8}, Values{3, 2, 1}), 0.25);
  EXPECT_DOUBLE_EQ(pick_efficiency(Values{4, 2, 8}, Values{3, 1, 2}), 1);
  EXPECT_DOUBLE_EQ(pick_efficiency(Values{7}, Values{0}), 1) << "one config";
  EXPECT_TRUE(std::isnan(pick_efficiency({}, {})));
}

TEST(PredictionStatistics, EqualPredictionsTakeTheFirst) {
  EXPECT_DOUBLE_EQ(pick_efficiency(Values{4, 2, 8}, Values{1, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(pick_efficiency(Values{5, 5, 5}, Values{3, 2, 1}), 1) << "all are alike";
}

TEST(PredictionStatistics, TiesOfTimesAreMissesUnlessTheFirstIsHit) {
  EXPECT_FALSE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 1));
  EXPECT_FALSE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 2));
  EXPECT_TRUE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 3));
  EXPECT_TRUE(is_top_k(Values{5, 5, 5}, Values{1, 2, 3}, 1));
  EXPECT_FALSE(is_top_k(Values{9, 5}, Values{1, 1}, 1)) << "of equal predictions the first counts";
  EXPECT_TRUE(is_top_k(Values{9, 5}, Values{1, 1}, 2));
  EXPECT_TRUE(is_top_k(Values{9}, Values{1}, 1));
  EXPECT_FALSE(is_top_k({}, {}, 5));
}

TEST(PredictionStatistics, RSquaredOfTheMeanIsZeroOfThePerfectOne) {
  EXPECT_DOUBLE_EQ(r_squared(Values{1, 2, 3}, Values{1, 2, 3}), 1);
  EXPECT_DOUBLE_EQ(r_squared(Values{1, 2, 3}, Values{2, 2, 2}), 0);
  EXPECT_LT(r_squared(Values{1, 2, 3}, Values{3, 2, 1}), 0);
  EXPECT_TRUE(std::isnan(r_squared(Values{2, 2, 2}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(r_squared(Values{2}, Values{2})));
  EXPECT_TRUE(std::isnan(r_squared({}, {})));
}

TEST(PredictionStatistics, ErrorsAreMeans) {
  const PredictionErrors errors = prediction_errors(Values{1, 2, 6}, Values{1, 4, 5});
  EXPECT_DOUBLE_EQ(errors.rmse, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(errors.mae, 1);
  EXPECT_DOUBLE_EQ(errors.r2, 1 - 5.0 / 14);
  EXPECT_TRUE(std::isnan(prediction_errors({}, {}).rmse));
  EXPECT_TRUE(std::isnan(prediction_errors({}, {}).mae));
}

}  // namespace
}  // namespace foretune
