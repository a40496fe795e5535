#include "foretune/evaluate/ck_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretune {
namespace {

using Values = std::vector<double>;

TEST(CkMetrics, EfficiencyIsOfTheBestPredicted) {
  EXPECT_DOUBLE_EQ(tflops_efficiency(Values{4, 2, 8}, Values{3, 2, 1}), 0.25);
  EXPECT_DOUBLE_EQ(tflops_efficiency(Values{4, 2, 8}, Values{3, 1, 2}), 1);
  EXPECT_DOUBLE_EQ(tflops_efficiency(Values{7}, Values{0}), 1) << "one config";
  EXPECT_TRUE(std::isnan(tflops_efficiency({}, {})));
}

TEST(CkMetrics, EqualPredictionsTakeTheFirst) {
  EXPECT_DOUBLE_EQ(tflops_efficiency(Values{4, 2, 8}, Values{1, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(tflops_efficiency(Values{5, 5, 5}, Values{3, 2, 1}), 1) << "all are alike";
}

TEST(CkMetrics, TiesOfTimesAreMissesUnlessTheFirstIsHit) {
  EXPECT_FALSE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 1));
  EXPECT_FALSE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 2));
  EXPECT_TRUE(is_top_k(Values{5, 5, 5}, Values{3, 2, 1}, 3));
  EXPECT_TRUE(is_top_k(Values{5, 5, 5}, Values{1, 2, 3}, 1));
  EXPECT_FALSE(is_top_k(Values{9, 5}, Values{1, 1}, 1)) << "of equal predictions the first counts";
  EXPECT_TRUE(is_top_k(Values{9, 5}, Values{1, 1}, 2));
  EXPECT_TRUE(is_top_k(Values{9}, Values{1}, 1));
  EXPECT_FALSE(is_top_k({}, {}, 5));
}

TEST(CkMetrics, RSquaredOfTheMeanIsZeroOfThePerfectOne) {
  EXPECT_DOUBLE_EQ(r_squared(Values{1, 2, 3}, Values{1, 2, 3}), 1);
  EXPECT_DOUBLE_EQ(r_squared(Values{1, 2, 3}, Values{2, 2, 2}), 0);
  EXPECT_LT(r_squared(Values{1, 2, 3}, Values{3, 2, 1}), 0);
  EXPECT_TRUE(std::isnan(r_squared(Values{2, 2, 2}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(r_squared(Values{2}, Values{2})));
  EXPECT_TRUE(std::isnan(r_squared({}, {})));
}

TEST(CkMetrics, SumUpOverProblems) {
  CkMetricsBuilder builder;
  builder.add({}, {}, 1e9);  // nothing valid: not a problem
  builder.add(Values{1000, 2000}, Values{std::log(1000.0), std::log(2000.0)}, 1e6);
  builder.add(Values{1000, 4000}, Values{std::log(4000.0), std::log(1000.0)}, 1e6);
  const CkMetrics metrics = builder.take();
  EXPECT_EQ(metrics.problems, 2U);
  EXPECT_DOUBLE_EQ(metrics.mean_efficiency, 0.625);
  EXPECT_DOUBLE_EQ(metrics.median_efficiency, 0.625);
  EXPECT_DOUBLE_EQ(metrics.p10_efficiency, 0.325);
  EXPECT_DOUBLE_EQ(metrics.min_efficiency, 0.25);
  EXPECT_DOUBLE_EQ(metrics.ndcg_at_1(), 0.5);
  EXPECT_DOUBLE_EQ(metrics.top_k[1], 1);
  // Rates 1, 0.5, 1, 0.25 TFLOPS against 1, 0.5, 0.25, 1: mean 0.6875, squared errors 2 * 0.5625.
  const double distances = 2 * 0.3125 * 0.3125 + 0.1875 * 0.1875 + 0.4375 * 0.4375;
  EXPECT_NEAR(metrics.r2, 1 - 1.125 / distances, 1e-9);
  EXPECT_NEAR(metrics.rmse_tflops, std::sqrt(1.125 / 4), 1e-9);
  EXPECT_NEAR(metrics.mae_tflops, 1.5 / 4, 1e-9);
}

TEST(CkMetrics, WithoutProblemsOrWorkSayNothing) {
  const CkMetrics none = CkMetricsBuilder().take();
  EXPECT_EQ(none.problems, 0U);
  EXPECT_TRUE(std::isnan(none.mean_efficiency));
  EXPECT_TRUE(std::isnan(none.min_efficiency));
  EXPECT_TRUE(std::isnan(none.ndcg_at_1()));
  EXPECT_TRUE(std::isnan(none.r2));
  CkMetricsBuilder builder;
  builder.add(Values{1000, 2000}, Values{6, 7}, 0);
  EXPECT_TRUE(std::isnan(builder.take().r2));
  EXPECT_FALSE(std::isnan(builder.take().r2_log));
}

}  // namespace
}  // namespace foretune
