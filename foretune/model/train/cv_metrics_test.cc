#include "foretune/model/train/cv_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretune {
namespace {

PredictedRow row(std::uint32_t problem, double time_ns, double score) {
  return {.problem = problem, .time_ns = time_ns, .score = score, .value = 0, .prediction = 0};
}

TEST(CvMetrics, EfficiencyAndHitsOfTwoProblems) {
  // Problem 0: the pick is the best. Problem 1: the best is fourth by score, the pick takes twice
  // as long.
  const std::vector<PredictedRow> rows{row(0, 10, 1), row(1, 40, 1), row(0, 20, 2), row(1, 30, 2),
                                       row(1, 50, 3), row(1, 20, 4), row(1, 60, 5)};
  const CvMetrics metrics = cv_metrics(rows);
  EXPECT_EQ(metrics.problems, 2U);
  EXPECT_EQ(metrics.rows, 7U);
  EXPECT_DOUBLE_EQ(metrics.mean_efficiency, 0.75);
  EXPECT_DOUBLE_EQ(metrics.p50_efficiency, 0.75);
  EXPECT_DOUBLE_EQ(metrics.p10_efficiency, 0.55);
  EXPECT_DOUBLE_EQ(metrics.min_efficiency, 0.5);
  EXPECT_DOUBLE_EQ(metrics.ndcg_at_1, 0.5);
  EXPECT_DOUBLE_EQ(metrics.top3_hit, 0.5);
  EXPECT_DOUBLE_EQ(metrics.top5_hit, 1);
  EXPECT_DOUBLE_EQ(metrics.top10_hit, 1);
}

TEST(CvMetrics, AnExactTieWithTheBestIsAMissUnlessItIsTheFirst) {
  EXPECT_DOUBLE_EQ(cv_metrics(std::vector{row(0, 10, 2), row(0, 10, 1)}).ndcg_at_1, 0);
  EXPECT_DOUBLE_EQ(cv_metrics(std::vector{row(0, 10, 1), row(0, 10, 2)}).ndcg_at_1, 1);
  EXPECT_DOUBLE_EQ(cv_metrics(std::vector{row(0, 10, 2), row(0, 10, 1)}).mean_efficiency, 1);
}

TEST(CvMetrics, AmongEqualScoresTheFirstRowIsPicked) {
  const CvMetrics metrics = cv_metrics(std::vector{row(0, 30, 0), row(0, 10, 0), row(0, 20, 0)});
  EXPECT_DOUBLE_EQ(metrics.mean_efficiency, 1.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.ndcg_at_1, 0);
  EXPECT_DOUBLE_EQ(metrics.top3_hit, 1);
}

TEST(CvMetrics, ErrorsAreThoseOfTheLearnedValues) {
  std::vector<PredictedRow> rows{row(0, 10, 1), row(0, 20, 2), row(1, 10, 1)};
  const auto learned = [&](std::size_t i, double value, double prediction) {
    rows[i].value = value;
    rows[i].prediction = prediction;
  };
  learned(0, 1, 1);
  learned(1, 2, 4);
  learned(2, 6, 5);
  const CvMetrics metrics = cv_metrics(rows);
  EXPECT_DOUBLE_EQ(metrics.rmse, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(metrics.mae, 1);
  EXPECT_DOUBLE_EQ(metrics.r2, 1 - 5.0 / 14);
}

TEST(CvMetrics, EqualValuesHaveNoR2AndOneConfigIsAlwaysFound) {
  const CvMetrics metrics = cv_metrics(std::vector{row(3, 10, 1)});
  EXPECT_TRUE(std::isnan(metrics.r2));
  EXPECT_DOUBLE_EQ(metrics.mean_efficiency, 1);
  EXPECT_DOUBLE_EQ(metrics.ndcg_at_1, 1);
}

TEST(CvMetrics, NothingFromNothing) {
  const CvMetrics metrics = cv_metrics({});
  EXPECT_EQ(metrics.problems, 0U);
  EXPECT_EQ(metrics.mean_efficiency, 0);
}

TEST(CvMetrics, TheMeanOfFoldsLeavesOutWhatCannotBeSaid) {
  CvMetrics first{.problems = 2, .rows = 10, .rmse = 1, .r2 = 0.5, .mean_efficiency = 0.8};
  CvMetrics second{.problems = 1, .rows = 4, .rmse = 3, .r2 = std::nan(""), .mean_efficiency = 0.6};
  const CvMetrics mean = mean_of(std::vector{first, second});
  EXPECT_EQ(mean.problems, 3U);
  EXPECT_EQ(mean.rows, 14U);
  EXPECT_DOUBLE_EQ(mean.rmse, 2);
  EXPECT_DOUBLE_EQ(mean.r2, 0.5);
  EXPECT_DOUBLE_EQ(mean.mean_efficiency, 0.7);
}

TEST(CvMetrics, EveryFigureHasAName) {
  const auto named = cv_metrics(std::vector{row(0, 10, 1)}).named();
  ASSERT_EQ(named.size(), 11U);
  EXPECT_EQ(named[3].first, "mean_efficiency");
  EXPECT_EQ(named[3].second, 1);
}

}  // namespace
}  // namespace foretune
