// Collections with a stage of their own behind the timing, and what replays them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/families/recorded/recorded.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

using testing::HasSubstr;

class CollectStagesTest : public testing::Test {
 protected:
  CollectStagesTest() { make({}); }
  void make(std::vector<std::pair<std::string, std::string>> parameters) {
    parameters.emplace_back("metrics", "1");
    family = testing_support::null_with(std::move(parameters));
    context.machine = family->info().fingerprint.digest();
    measurer = make_local_measurer(family, {}, context);
    options.search_space.sample_size = 20;
    options.evaluate = {std::string(kNullAccuracy)};
    for (const std::int64_t m : {64, 700}) {
      problems.push_back(testing_support::null_problem(m));
    }
    problems.resize(2, problems.front());
  }
  CollectResult run(const std::string& name = "a.ftd") {
    std::optional<Dataset> previous;
    if (std::filesystem::exists(folder / name)) {
      previous = *read_dataset(folder / name);
    }
    options.previous = previous ? &*previous : nullptr;
    const auto journal = JournalWriter::open(folder / name, header_of(family->info()));
    EXPECT_TRUE(journal) << (journal ? "" : journal.error().message);
    const auto result = collect(*family, *measurer, **journal, problems, options, {});
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return *result;
  }
  Dataset data(const std::string& name = "a.ftd") { return *read_dataset(folder / name); }
  static std::vector<Measurement> rows_of(const Dataset& dataset) {
    std::vector<Measurement> out;
    for (RowIndex i = 0; i < dataset.size(); ++i) {
      out.push_back(dataset.measurement(i));
    }
    return out;
  }

  testing_support::TemporaryFolder folder;
  std::shared_ptr<const Family> family;
  Context context;
  std::unique_ptr<Measurer> measurer;
  CollectOptions options;
  std::vector<Problem> problems;
};

TEST_F(CollectStagesTest, EveryConfigThatRanWellIsEvaluatedOnceBehindTheTimingOfItsProblem) {
  const CollectResult result = run();
  const std::vector<Measurement> rows = rows_of(data());
  EXPECT_EQ(rows.size(), result.progress.measured);
  std::map<std::string, int> timed;
  std::map<std::string, int> evaluated;
  for (const Measurement& row : rows) {
    const std::string key =
        concat(row.problem.text(), " ", to_text(family->info().config_schema, row.config));
    if (row.is_evaluation()) {
      ++evaluated[key];
      EXPECT_EQ(timed[key], 1) << "found out before it was timed";
      EXPECT_EQ(row.metrics,
                (std::vector<MetricValue>{{kNullAccuracy, null_accuracy(row.config), 0, 1}}));
    } else {
      timed[key] += row.outcome == Outcome::kOk ? 1 : 0;
      EXPECT_EQ(row.find(kPackNs)->value, null_pack_ns(row.problem, row.config));
      EXPECT_EQ(row.find(kWorkspaceBytes)->value, null_bytes(row.config));
    }
  }
  std::erase_if(timed, [](const auto& entry) { return entry.second == 0; });
  EXPECT_EQ(evaluated, timed);
  EXPECT_EQ(result.progress.evaluated, evaluated.size());
  EXPECT_EQ(data().header().metrics.front().name, kNullAccuracy);
}

TEST_F(CollectStagesTest, AnEndAfterAnyNumberOfMeasurementsIsResumed) {
  run("whole.ftd");
  const std::vector<Measurement> whole = rows_of(data("whole.ftd"));
  options.budget.measurements = 7;
  CollectResult result;
  for (std::size_t runs = 0; runs < 2 + whole.size() / 7; ++runs) {
    result = run();
  }
  EXPECT_FALSE(result.stopped_by_budget);
  EXPECT_TRUE(rows_of(data()) == whole);
  options.budget.measurements.reset();
  EXPECT_EQ(run().progress.measured, 0U);
}

TEST_F(CollectStagesTest, AStageMayComeInALaterRunAndNothingIsTimedAgain) {
  options.evaluate.clear();
  const CollectResult timing = run();
  EXPECT_EQ(timing.progress.evaluated, 0U);
  options.evaluate = {std::string(kNullAccuracy)};
  const CollectResult later = run();
  EXPECT_EQ(later.progress.measured, later.progress.evaluated);
  EXPECT_GT(later.progress.evaluated, 20U);
  EXPECT_EQ(run().progress.measured, 0U);
}

TEST_F(CollectStagesTest, WhatFailedIsNotTriedAgain) {
  make({{"evaluate_fail", "0.4"}});
  const CollectResult result = run();
  const auto failed = result.progress.by_outcome[static_cast<std::size_t>(Outcome::kPrepareFailed)];
  EXPECT_GT(failed, 5U);
  EXPECT_EQ(run().progress.measured, 0U);
  Dataset dataset = data();
  dataset.deduplicate();
  std::size_t apart = 0;
  for (const Dataset::Row& row : dataset.rows()) {
    apart += row.is_evaluation() ? 1U : 0U;
  }
  EXPECT_EQ(apart, failed);
}

TEST_F(CollectStagesTest, ThePlanCountsBothStages) {
  const auto plan = plan_collection(*family, problems, options, {}, nullptr, context);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->measurements, 80U);
  const CollectResult result = run();
  const auto journal = *JournalWriter::open(folder / "a.ftd", header_of(family->info()));
  const auto after = plan_collection(*family, problems, options, {}, journal.get(), context);
  EXPECT_EQ(after->measurements, 80U);
  EXPECT_EQ(after->already_done, result.progress.measured);
}

// The whole way of a metric: collected, replayed, tuned by.
TEST_F(CollectStagesTest, AReplayYieldsTheSameValuesInCollectionAndTuning) {
  make({{"noise", "0"}});
  options.search_space.exhaustive = true;
  // The best are measured again, in rows without what the later stage found out.
  options.confirm_top = 4;
  Protocol protocol;
  protocol.censor_factor = 0;
  measurer = make_local_measurer(family, protocol, context);
  run("live.ftd");
  const Dataset live = data("live.ftd");
  auto table = recorded_table(live);
  ASSERT_TRUE(table) << table.error().message;
  std::shared_ptr<const Family> replayed = *make_recorded(*std::move(table));
  EXPECT_EQ(replayed->info().metrics, family->info().metrics);

  const std::shared_ptr<const Family> null = family;
  family = replayed;
  measurer = make_local_measurer(replayed, protocol, context);
  options.confirm_top = 0;
  run("replayed.ftd");
  std::map<std::string, std::map<std::string, double>> values;
  const auto key_of = [&](const Measurement& row) {
    return concat(row.problem.text(), " ", to_text(null->info().config_schema, row.config));
  };
  for (const Measurement& row : rows_of(data("replayed.ftd"))) {
    EXPECT_EQ(row.outcome, Outcome::kOk) << row.reason;
    for (const MetricValue& value : row.metrics) {
      EXPECT_TRUE(values[key_of(row)].emplace(value.metric, value.value).second);
    }
  }
  std::size_t checked = 0;
  for (const Measurement& row : rows_of(live)) {
    for (const MetricValue& value : row.metrics) {
      if (value.metric != kMedianNs) {
        ASSERT_TRUE(values[key_of(row)].contains(value.metric)) << value.metric;
        EXPECT_DOUBLE_EQ(values[key_of(row)][value.metric], value.value) << value.metric;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 500U);

  TuneOptions tuning{.strategy = "exhaustive", .finalists = 1000};
  for (const char* objective :
       {"maximise accuracy subject to time_ns <= 4 ms", "pareto time_ns pack_ns accuracy",
        "minimise time_ns subject to bytes <= 16 KiB"}) {
    tuning.objective = *Objective::parse(objective);
    const auto by_formula = [&](const std::shared_ptr<const Family>& of) {
      const auto own = make_local_measurer(of, protocol, context);
      return tune_problem(*of, *own, nullptr, problems[1], tuning, {});
    };
    const auto expected = by_formula(null);
    const auto actual = by_formula(replayed);
    ASSERT_TRUE(expected && actual) << objective << (actual ? "" : actual.error().message);
    ASSERT_EQ(actual->finalists.size(), expected->finalists.size()) << objective;
    EXPECT_EQ(actual->measured.size(), expected->measured.size());
    for (std::size_t i = 0; i < expected->finalists.size(); ++i) {
      for (std::size_t t = 0; t < tuning.objective.targets.size(); ++t) {
        // Data sets keep times as floats.
        EXPECT_NEAR(actual->finalists[i].judgement.targets[t],
                    expected->finalists[i].judgement.targets[t],
                    1e-6 * std::abs(expected->finalists[i].judgement.targets[t]))
            << objective;
      }
    }
  }
}

TEST_F(CollectStagesTest, AReplayRefusesWhatWasNotRecorded) {
  options.evaluate.clear();
  run();
  Dataset measured = data();
  ASSERT_TRUE(
      measured.declare_metrics(std::vector{*find_metric(family->info().metrics, kNullAccuracy)}));
  Measurement one = measured.measurement(0);
  one.stage = Stage::kEvaluate;
  one.metrics = {{kNullAccuracy, 50}};
  measured.add(one);
  std::shared_ptr<const Family> replayed = *make_recorded(*recorded_table(measured));
  const auto own = make_local_measurer(replayed, {}, context);
  const auto evaluate = [&](RowIndex row) {
    const Measurement of = measured.measurement(row);
    return own->measure(
        {.problem = of.problem, .config = of.config, .evaluate = {std::string(kNullAccuracy)}});
  };
  EXPECT_EQ(evaluate(0).metrics, (std::vector<MetricValue>{{kNullAccuracy, 50}}));
  const Measurement missing = evaluate(1);
  EXPECT_EQ(missing.outcome, Outcome::kUnsupported);
  EXPECT_TRUE(missing.is_evaluation());
  EXPECT_THAT(missing.reason, HasSubstr("accuracy was not recorded"));
}

}  // namespace
}  // namespace foretune
