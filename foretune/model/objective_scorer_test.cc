#include "foretune/model/objective_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/metric_model_samples.h"

namespace foretune {
namespace {

struct Prepared {
  Model model;
  std::unique_ptr<Scorer> scorer;

  Prepared() {
    Rng rng(41);
    model = sample_metrics_model(
        {.forests = 2, .candidates = 120, .forest = {.trees = 6, .max_leaves = 15}}, rng);
    scorer = *make_scorer(model);
  }
  [[nodiscard]] std::unique_ptr<PreparedPool> pool(const Scorer& of) const {
    return *of.prepare(ConfigList(model.pool), model.fingerprint.hardware);
  }
  [[nodiscard]] Result<std::unique_ptr<PreparedPool>> following(const Judge& judge) const {
    return objective_pool(pool(*scorer), scorer->columns(), judge);
  }
};

Judge judge_for(const Prepared& prepared, std::string_view text) {
  auto judge = judge_of(*Objective::parse(text), prepared.scorer->columns());
  EXPECT_TRUE(judge.has_value()) << judge.error().message;
  return *judge;
}

// The middle of a column's predicted values, so that a bound there cuts the pool in two.
double middle_value(const Prepared& prepared, const Problem& problem, std::size_t column) {
  const auto pool = prepared.pool(*prepared.scorer);
  std::vector<std::byte> workspace(pool->workspace_bytes());
  std::vector<double> scores(pool->size());
  pool->score_column(column, problem, workspace, scores, {});
  std::nth_element(scores.begin(), scores.begin() + 60, scores.end());
  return prepared.scorer->columns()[column].scale.to_value(scores[60]);
}

TEST(ObjectiveScorer, AgreesWithJudgingEveryColumn) {
  const Prepared prepared;
  Rng rng(4);
  const Problem any = sample_gemm(rng);
  const std::string bound = concat("pack_ns <= ", middle_value(prepared, any, 1));
  for (const std::string& text :
       {concat("minimise time_ns subject to ", bound),
        concat("maximise qos_tune subject to ", bound,
               " and time_ns <= ", middle_value(prepared, any, 0)),
        concat("minimise pack_ns subject to qos_tune >= ", middle_value(prepared, any, 2))}) {
    const Judge judge = judge_for(prepared, text);
    const auto following = prepared.following(judge);
    ASSERT_TRUE(following.has_value()) << following.error().message;
    const auto& pool = *following;
    const auto columns = prepared.pool(*prepared.scorer);
    std::vector<std::byte> workspace(std::max(pool->workspace_bytes(), columns->workspace_bytes()));
    std::size_t feasible = 0;
    for (int i = 0; i < 10; ++i) {
      const Problem problem = i == 0 ? any : sample_gemm(rng);
      const std::size_t size = pool->size();
      std::vector<double> scores(size);
      std::vector<double> all(3 * size);
      std::vector<double> spread(size);
      std::vector<double> all_spreads(3 * size);
      pool->score(problem, workspace, scores, spread);
      columns->score_columns(problem, workspace, all, all_spreads);
      const std::span<const ScoreColumn> infos = prepared.scorer->columns();
      std::vector<double> violations(size);
      std::size_t target = 0;
      while (infos[target].metric.name != judge.metrics()[0].name) {
        ++target;
      }
      for (std::size_t c = 0; c < size; ++c) {
        std::vector<MetricValue> values;
        for (std::size_t m = 0; m < 3; ++m) {
          values.emplace_back(infos[m].metric.name, infos[m].scale.to_value(all[m * size + c]));
        }
        const Judgement judgement = judge.judge(values);
        violations[c] = judgement.violation;
        feasible += judgement.is_feasible() ? 1U : 0U;
        EXPECT_EQ(keeps_bounds(scores[c]), judgement.is_feasible());
        if (judgement.is_feasible()) {
          EXPECT_EQ(scores[c], all[target * size + c]);
        }
        EXPECT_EQ(spread[c], all_spreads[target * size + c]);
      }
      for (std::size_t c = 1; c < size; ++c) {
        if (violations[c] > 0 && violations[c - 1] > 0) {
          EXPECT_EQ(violations[c] < violations[c - 1], scores[c] < scores[c - 1]);
        }
      }
    }
    EXPECT_GT(feasible, 50U) << text;
    EXPECT_LT(feasible, 1100U) << text;
  }
}

TEST(ObjectiveScorer, OfOneMetricWithoutBoundsIsItsColumn) {
  const Prepared prepared;
  const auto following = prepared.following(judge_for(prepared, "maximise qos_tune"));
  ASSERT_TRUE(following.has_value());
  const auto& pool = *following;
  const auto columns = prepared.pool(*prepared.scorer);
  std::vector<std::byte> workspace(std::max(pool->workspace_bytes(), columns->workspace_bytes()));
  std::vector<double> scores(pool->size());
  std::vector<double> expected(pool->size());
  Rng rng(9);
  const Problem problem = sample_gemm(rng);
  pool->score(problem, workspace, scores, {});
  columns->score_column(2, problem, workspace, expected, {});
  EXPECT_EQ(scores, expected);
}

TEST(ObjectiveScorer, AllocatesNothingWhenItScores) {
  const Prepared prepared;
  const Judge judge =
      judge_for(prepared, "minimise time_ns subject to pack_ns <= 1 and qos_tune >= 80");
  const auto following = prepared.following(judge);
  ASSERT_TRUE(following.has_value());
  const auto& pool = *following;
  std::vector<std::byte> workspace(pool->workspace_bytes());
  std::vector<double> scores(pool->size());
  Rng rng(9);
  const Problem problem = sample_gemm(rng);
  pool->score(problem, workspace, scores, {});
  const std::uint64_t before = allocation_count();
  pool->score(problem, workspace, scores, {});
  EXPECT_EQ(allocation_count(), before);
}

TEST(ObjectiveScorer, RefusesWhatItCannotFollowWithTheReason) {
  const Prepared prepared;
  const auto expect = [&](std::string_view text, ErrorCode code, std::string_view reason) {
    const auto objective = Objective::parse(text);
    ASSERT_TRUE(objective.has_value()) << objective.error().message;
    auto judge = judge_of(*objective, prepared.scorer->columns());
    auto following = judge ? prepared.following(*judge).map([](auto&&) {})
                           : Status(tl::unexpected(judge.error()));
    ASSERT_FALSE(following) << text;
    EXPECT_EQ(following.error().code, code) << following.error().message;
    EXPECT_NE(following.error().message.find(reason), std::string::npos)
        << following.error().message;
  };
  expect("pareto time_ns pack_ns", ErrorCode::kUnsupported, "several targets");
  expect("minimise bytes", ErrorCode::kNotFound,
         "predicts time_ns, pack_ns, qos_tune and no bytes");
  expect("minimise time_ns subject to qos_tune >= baseline - 2", ErrorCode::kInvalidArgument,
         "relative to a baseline");
  Rng rng(6);
  const Model relative =
      sample_model({.candidates = 8, .forest = {.trees = 2, .max_leaves = 4}}, rng);
  const auto judge = judge_of(*Objective::parse("minimise time_ns subject to time_ns <= 2 us"),
                              columns_of(relative));
  ASSERT_FALSE(judge.has_value());
  EXPECT_NE(judge.error().message.find("up to a factor"), std::string::npos);
}

}  // namespace
}  // namespace foretune
