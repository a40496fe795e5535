#include "foretune/dataset/metric_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

DatasetHeader two_metrics_header() {
  DatasetHeader out;
  out.family = "test";
  out.problem_type = kGemmProblem;
  out.config_schema = {.name = "one", .version = 1, .parameters = {{"tile", {}}}};
  return out;
}

Problem problem(int m) { return *Problem::parse(concat("gemm m=", m, " n=8 k=8")); }

Config config(int tile) {
  return {.schema = two_metrics_header().config_schema.id(),
          .words = {static_cast<std::int32_t>(tile)}};
}

Measurement measured(int m, int tile, Outcome outcome,
                     const std::vector<std::pair<std::string_view, double>>& values) {
  Measurement out{.problem = problem(m),
                  .config = config(tile),
                  .context = {},
                  .outcome = outcome,
                  .reason = outcome == Outcome::kOk ? "" : "a reason"};
  set_metrics(out, values);
  return out;
}

// Two problems; the packing of tile 1 takes no time, tile 4 fails, tile 5 was stopped, tile 6 was
// not packed.
Dataset sample() {
  Dataset out(two_metrics_header());
  for (const int m : {1, 2}) {
    const double factor = m;
    out.add(measured(m, 1, Outcome::kOk, {{"time_ns", 400 * factor}, {"pack_ns", 0}}));
    out.add(measured(m, 2, Outcome::kOk, {{"time_ns", 200 * factor}, {"pack_ns", 1000}}));
    out.add(measured(m, 3, Outcome::kOk, {{"time_ns", 100 * factor}, {"pack_ns", 9000}}));
    out.add(measured(m, 4, Outcome::kCrashed, {}));
    out.add(measured(m, 5, Outcome::kCensored, {{"time_ns", 900 * factor}}));
    out.add(measured(m, 6, Outcome::kOk, {{"time_ns", 50 * factor}}));
  }
  out.add_baseline({.problem = 0, .name = "vendor", .time_ns = 70});
  return out;
}

DatasetJudge judge_for(const Dataset& dataset, std::string_view objective,
                       const DefaultConfigs& default_configs = nullptr) {
  auto judge = DatasetJudge::create(dataset, *Objective::parse(objective), default_configs);
  EXPECT_TRUE(judge.has_value()) << judge.error().message;
  return *judge;
}

TEST(MetricView, NamesTheMetricsThatRowsHave) {
  const std::vector<MetricInfo> infos = sample().present_metrics();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(infos[0].name, "time_ns");
  EXPECT_EQ(infos[1].name, "pack_ns");
  const auto missing = find_metric(sample(), "energy_j");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("time_ns, pack_ns"), std::string::npos);
}

TEST(MetricView, OfTimeIsTheDataSetToTheBit) {
  const Dataset dataset = sample();
  const Dataset view = metric_view(dataset, "time_ns", ValueScale{});
  ASSERT_EQ(view.size(), dataset.size());
  for (RowIndex i = 0; i < view.size(); ++i) {
    EXPECT_EQ(view.rows()[i], dataset.rows()[i]) << i;
  }
  EXPECT_EQ(view.baselines().size(), 1U);
  EXPECT_TRUE(std::equal(view.problems().begin(), view.problems().end(), dataset.problems().begin(),
                         dataset.problems().end()));
}

TEST(MetricView, HoldsExpOfTheMetricAndLeavesOutRowsWithout) {
  const Dataset dataset = sample();
  const ValueScale scale = *fit_scale(dataset, metric_info("pack_ns"));
  EXPECT_EQ(scale.kind, ValueScale::Kind::kOffsetLog);
  std::vector<RowIndex> rows;
  const Dataset view = metric_view(dataset, "pack_ns", scale, {}, &rows);
  EXPECT_EQ(rows, (std::vector<RowIndex>{0, 1, 2, 3, 6, 7, 8, 9}));
  for (RowIndex i = 0; i < view.size(); ++i) {
    const Dataset::Row& row = view.rows()[i];
    EXPECT_EQ(row.config, dataset.rows()[rows[i]].config);
    if (row.outcome == Outcome::kCrashed) {
      EXPECT_EQ(view.reason(row.reason), "a reason");
    } else {
      EXPECT_FLOAT_EQ(row.time_ns, static_cast<float>(metric_values(dataset, "pack_ns")[rows[i]] +
                                                      scale.offset));
    }
  }
  EXPECT_TRUE(view.baselines().empty());
}

TEST(MetricView, KeepsOnlyWhatHasAllMetrics) {
  const Dataset dataset = sample();
  const std::vector<MetricInfo> both{metric_info("time_ns"), metric_info("pack_ns")};
  const Dataset view = metric_view(dataset, "time_ns", ValueScale{}, both);
  EXPECT_EQ(view.size(), 8U) << "neither the stopped ones nor those without packing";
}

TEST(ObjectiveView, RefusesWhatMissesABoundWithTheReason) {
  const Dataset dataset = sample();
  const DatasetJudge judge = judge_for(dataset, "minimise time_ns subject to pack_ns <= 2 us");
  const auto view = objective_view(dataset, judge, ValueScale{});
  ASSERT_TRUE(view.has_value());
  ASSERT_EQ(view->size(), dataset.size());
  const auto reason = [&](RowIndex row) { return view->reason(view->rows()[row].reason); };
  EXPECT_EQ(view->rows()[0], dataset.rows()[0]);
  EXPECT_EQ(view->rows()[1].outcome, Outcome::kOk);
  EXPECT_EQ(view->rows()[2].outcome, Outcome::kUnsupported);
  EXPECT_EQ(reason(2), "misses pack_ns <= 2000 ns");
  EXPECT_EQ(view->rows()[3].outcome, Outcome::kCrashed);
  EXPECT_EQ(view->rows()[4].outcome, Outcome::kUnsupported);
  EXPECT_EQ(reason(5), "pack_ns was not measured");
  EXPECT_TRUE(view->baselines().empty());
}

TEST(ObjectiveView, JudgesByTheBaselineOfEachProblem) {
  const Dataset dataset = sample();
  const DefaultConfigs defaults = [](const Problem&) { return std::vector{config(2)}; };
  const DatasetJudge judge =
      judge_for(dataset, "minimise pack_ns subject to time_ns <= 1.5 * baseline", defaults);
  EXPECT_DOUBLE_EQ(judge.of(0)->limit(0), 300);
  EXPECT_DOUBLE_EQ(judge.of(1)->limit(0), 600);
  const ValueScale scale = *fit_scale(dataset, metric_info("pack_ns"));
  const auto view = objective_view(dataset, judge, scale);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->rows()[0].outcome, Outcome::kUnsupported) << "twice as slow";
  EXPECT_EQ(view->rows()[1].outcome, Outcome::kOk);
  const auto objective = *Objective::parse("minimise pack_ns subject to time_ns <= 2 * baseline");
  EXPECT_FALSE(DatasetJudge::create(dataset, objective, nullptr).has_value());
  const DefaultConfigs unmeasured = [](const Problem&) { return std::vector{config(77)}; };
  EXPECT_FALSE(DatasetJudge::create(dataset, objective, unmeasured).has_value());
}

TEST(ObjectiveView, OfTimeWithoutBoundsIsTheDataSet) {
  const Dataset dataset = sample();
  const auto view = objective_view(dataset, judge_for(dataset, "minimise time_ns"), ValueScale{});
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(std::equal(view->rows().begin(), view->rows().end(), dataset.rows().begin(),
                         dataset.rows().end()));
  EXPECT_EQ(view->baselines().size(), 1U);
}

TEST(ObjectiveView, RefusesParetoObjectives) {
  const Dataset dataset = sample();
  EXPECT_FALSE(objective_view(dataset, judge_for(dataset, "pareto time_ns pack_ns"), ValueScale{})
                   .has_value());
}

}  // namespace
}  // namespace foretune
