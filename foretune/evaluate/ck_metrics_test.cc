#include "foretune/evaluate/ck_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretune {
namespace {

using Values = std::vector<double>;

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
