#include "foretune/collect/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/collect/compare_picks.h"
#include "foretune/collect/selection.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/family/testing/forwarding_family.h"
#include "foretune/measure/testing/measurers.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using testing_support::null_problem;

// The null family, which refuses problems of height 13.
class PickyFamily final : public testing_support::ForwardingFamily {
 public:
  using ForwardingFamily::ForwardingFamily;
  Support supports(const Problem& problem) const override {
    return problem.field(1) == 13 ? Support::no("thirteen rows bring bad luck")
                                  : ForwardingFamily::supports(problem);
  }
};

// Passes requests on, remembering them; a measurement takes a second on the test's clock.
class WatchedMeasurer final : public testing_support::ForwardingMeasurer {
 public:
  using ForwardingMeasurer::ForwardingMeasurer;
  Measurement measure(const Request& request) override {
    requests.push_back(request);
    now_s += 1;
    if (before_answer) {
      before_answer();
    }
    if (no_worker) {
      Measurement measurement{.problem = request.problem, .config = request.config};
      measurement.outcome = Outcome::kCrashed;
      measurement.reason = "no worker could be started: no such file";
      return measurement;
    }
    return ForwardingMeasurer::measure(request);
  }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    compared.emplace_back(problem, std::vector<Config>(configs.begin(), configs.end()));
    now_s += 1;
    return ForwardingMeasurer::compare(problem, configs, rounds);
  }

  std::vector<Request> requests;
  std::vector<std::pair<Problem, std::vector<Config>>> compared;
  double now_s = 100;
  std::function<void()> before_answer;
  bool no_worker = false;
};

class CollectTest : public testing::Test {
 protected:
  CollectTest() { make({}); }

  void make(std::vector<std::pair<std::string, std::string>> parameters,
            const Protocol& protocol = {}) {
    family = std::make_shared<PickyFamily>(testing_support::null_with(std::move(parameters)));
    context.machine = family->info().fingerprint.digest();
    measurer = std::make_unique<WatchedMeasurer>(make_local_measurer(family, protocol, context));
    hooks.now_s = [this] { return measurer->now_s; };
  }
  std::unique_ptr<JournalWriter> open() {
    const DatasetHeader header{.family = "null",
                               .problem_type = kGemmProblem,
                               .config_schema = family->info().config_schema,
                               .fingerprint = family->info().fingerprint};
    auto journal = JournalWriter::open(path, header);
    EXPECT_TRUE(journal) << (journal ? "" : journal.error().message);
    return *std::move(journal);
  }
  CollectResult run(const std::vector<Problem>& problems) {
    const auto journal = open();
    auto result = collect(*family, *measurer, *journal, problems, options, hooks);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return *result;
  }
  // Returns the configs of height 700 that ran, fastest first.
  std::vector<Config> fastest() {
    std::vector<std::pair<double, Config>> timed;
    for (const Measurement& row : rows()) {
      if (row.problem == null_problem(700) && row.outcome == Outcome::kOk) {
        timed.emplace_back(row.metrics.at(0).value, row.config);
      }
    }
    std::sort(timed.begin(), timed.end());
    std::vector<Config> configs;
    for (const auto& [time_ns, config] : timed) {
      configs.push_back(config);
    }
    return configs;
  }
  std::vector<Measurement> rows() {
    const Dataset dataset = *read_dataset(path);
    std::vector<Measurement> all;
    all.reserve(dataset.size());
    for (RowIndex i = 0; i < dataset.size(); ++i) {
      all.push_back(dataset.measurement(i));
    }
    return all;
  }
  std::set<std::uint64_t> keys() {
    std::set<std::uint64_t> found;
    for (const Measurement& row : rows()) {
      EXPECT_TRUE(found.insert(resume_key(row.problem, row.config, row.context)).second)
          << "a row stands in the file twice";
    }
    return found;
  }

  testing_support::TemporaryFolder folder;
  std::filesystem::path path = folder / "collected.ftd";
  Context context;
  std::shared_ptr<const Family> family;
  std::unique_ptr<WatchedMeasurer> measurer;
  CollectOptions options;
  CollectHooks hooks;
};

TEST_F(CollectTest, MeasuresTheSampleOfEveryProblem) {
  options.search_space.sample_size = 20;
  std::vector<std::uint64_t> finished;
  std::uint64_t reports = 0;
  CollectProgress last;
  hooks.on_problem_done = [&](std::uint64_t done) { finished.push_back(done); };
  hooks.on_progress = [&](const CollectProgress& progress) {
    ++reports;
    last = progress;
  };
  const CollectResult result = run({null_problem(64), null_problem(512), null_problem(2000)});
  EXPECT_EQ(result.progress.measured, 60U);
  EXPECT_EQ(result.progress.planned, 60U);
  EXPECT_EQ(result.progress.problems_done, 3U);
  EXPECT_FALSE(result.stopped_by_budget);
  EXPECT_THAT(finished, ElementsAre(1, 2, 3));
  EXPECT_EQ(reports, 60U);
  EXPECT_EQ(last.problem, null_problem(2000).text());
  EXPECT_GT(last.best_ns, 0);
  EXPECT_FALSE(last.best_config.empty());
  EXPECT_DOUBLE_EQ(last.eta_s, 0);
  EXPECT_EQ(keys().size(), 60U);
  EXPECT_EQ(result.progress.by_outcome[0] + result.progress.by_outcome[1], 60U);
}

TEST_F(CollectTest, ExhaustiveMeasuresTheWholeSpace) {
  options.search_space.exhaustive = true;
  const CollectResult result = run({null_problem(64)});
  EXPECT_EQ(result.progress.measured, (*family->space(null_problem(64)))->enumerable()->count());
}

TEST_F(CollectTest, ASecondRunMeasuresNothing) {
  options.search_space.sample_size = 10;
  run({null_problem(64), null_problem(65)});
  const std::vector<Measurement> before = rows();
  measurer->requests.clear();
  const CollectResult again = run({null_problem(64), null_problem(65)});
  EXPECT_EQ(again.progress.measured, 0U);
  EXPECT_EQ(again.progress.resumed, 20U);
  EXPECT_TRUE(measurer->requests.empty());
  EXPECT_EQ(rows(), before);
}

TEST_F(CollectTest, InterruptedAnywhereItReachesTheSameSet) {
  options.search_space.sample_size = 15;
  options.confirm_top = 3;
  options.confirm_rounds = 2;
  const std::vector<Problem> problems{null_problem(1), null_problem(300), null_problem(77)};
  run(problems);
  const std::set<std::uint64_t> reference = keys();
  for (const std::uint64_t step : {1U, 4U, 7U, 29U}) {
    std::filesystem::remove(path);
    options.budget.measurements = step;
    std::size_t rounds = 0;
    CollectResult result;
    do {
      const auto previous = read_dataset(path);
      options.previous = previous ? &*previous : nullptr;
      result = run(problems);
      // Only a budget too small for a comparison of three is overshot by one.
      EXPECT_LE(result.progress.measured, std::max<std::uint64_t>(step, 3));
      ASSERT_LT(++rounds, 200U);
    } while (result.stopped_by_budget);
    options.previous = nullptr;
    options.budget = {};
    EXPECT_EQ(keys(), reference);
  }
}

TEST_F(CollectTest, TheOrderOfProblemsDoesNotChangeTheirSamples) {
  options.search_space.sample_size = 12;
  run({null_problem(1), null_problem(300), null_problem(77)});
  const std::set<std::uint64_t> reference = keys();
  std::filesystem::remove(path);
  run({null_problem(77), null_problem(1), null_problem(300)});
  EXPECT_EQ(keys(), reference);
  std::filesystem::remove(path);
  options.seed = 43;
  run({null_problem(77), null_problem(1), null_problem(300)});
  EXPECT_NE(keys(), reference);
}

TEST_F(CollectTest, BudgetsEndTheRunWithoutOvershoot) {
  options.budget.measurements = 33;
  CollectResult result = run({null_problem(64), null_problem(128)});
  EXPECT_TRUE(result.stopped_by_budget);
  EXPECT_EQ(result.progress.measured, 33U);
  EXPECT_EQ(keys().size(), 33U);
  std::filesystem::remove(path);
  options.budget = {.seconds = 9.5};
  result = run({null_problem(64), null_problem(128)});
  EXPECT_TRUE(result.stopped_by_budget);
  // The tenth began after nine seconds: one measurement over.
  EXPECT_EQ(result.progress.measured, 10U);
  EXPECT_DOUBLE_EQ(result.progress.elapsed_s, 10);
}

TEST_F(CollectTest, ATimeBudgetNeedsAClock) {
  options.budget.seconds = 1;
  hooks.now_s = nullptr;
  const auto journal = open();
  const std::vector<Problem> problems{null_problem(1)};
  const auto result = collect(*family, *measurer, *journal, problems, options, hooks);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(CollectTest, ARequestToStopIsHeardAfterTheMeasurement) {
  std::atomic<bool> stop{false};
  hooks.stop = &stop;
  measurer->before_answer = [&] { stop = measurer->requests.size() == 5; };
  const CollectResult result = run({null_problem(64)});
  EXPECT_TRUE(result.stopped_by_request);
  EXPECT_FALSE(result.stopped_by_budget);
  EXPECT_EQ(result.progress.measured, 5U);
  EXPECT_EQ(keys().size(), 5U);
  EXPECT_EQ(result.progress.problems_done, 0U);
}

TEST_F(CollectTest, SkippedProblemsAreCountedWithTheirReason) {
  options.search_space.sample_size = 3;
  const CollectResult result = run(
      {null_problem(13), null_problem(64), null_problem(64), null_problem(64), null_problem(65)});
  EXPECT_EQ(result.progress.measured, 6U);
  EXPECT_EQ(result.progress.problems_done, 5U);
  EXPECT_THAT(result.skipped, ElementsAre(Pair("repeated in the list of problems", 2),
                                          Pair("thirteen rows bring bad luck", 1)));
}

TEST_F(CollectTest, FailuresAreRowsAndNeverIncumbents) {
  make({{"wrong", "0.3"}, {"prepare_fail", "0.3"}});
  const CollectResult result = run({null_problem(64), null_problem(700)});
  EXPECT_EQ(result.progress.measured, 128U);
  const auto count = [&](Outcome outcome) {
    return result.progress.by_outcome[static_cast<std::size_t>(outcome)];
  };
  EXPECT_GT(count(Outcome::kWrongResult), 10U);
  EXPECT_GT(count(Outcome::kPrepareFailed), 10U);
  std::map<Outcome, std::uint64_t> stored;
  for (const Measurement& row : rows()) {
    ++stored[row.outcome];
    EXPECT_EQ(row.reason.empty(), row.outcome == Outcome::kOk);
  }
  EXPECT_EQ(stored[Outcome::kWrongResult], count(Outcome::kWrongResult));
  EXPECT_EQ(std::accumulate(std::begin(result.progress.by_outcome),
                            std::end(result.progress.by_outcome), std::uint64_t{0}),
            128U);
}

TEST_F(CollectTest, IncumbentsAreTheBestOfTheProblemSoFar) {
  run({null_problem(64), null_problem(700)});
  std::map<std::string, double> best;
  for (const Request& request : measurer->requests) {
    const auto found = best.find(request.problem.text());
    EXPECT_DOUBLE_EQ(request.incumbent_ns, found == best.end() ? -1 : found->second);
    const auto again = make_local_measurer(family, {}, context)->measure(request);
    if (again.outcome == Outcome::kOk) {
      const double time_ns = again.metrics.at(0).value;
      double& entry = best.emplace(request.problem.text(), time_ns).first->second;
      entry = std::min(entry, time_ns);
    }
  }
}

TEST_F(CollectTest, IncumbentsOfAnEarlierRunAreCarriedOn) {
  options.budget.measurements = 30;
  run({null_problem(64)});
  const Dataset previous = *read_dataset(path);
  double best_ns = -1;
  for (const Measurement& row : rows()) {
    if (row.outcome == Outcome::kOk && (best_ns < 0 || row.metrics.at(0).value < best_ns)) {
      best_ns = row.metrics.at(0).value;
    }
  }
  options.budget = {};
  options.previous = &previous;
  measurer->requests.clear();
  run({null_problem(64)});
  ASSERT_FALSE(measurer->requests.empty());
  EXPECT_FLOAT_EQ(static_cast<float>(measurer->requests[0].incumbent_ns),
                  static_cast<float>(best_ns));
}

TEST_F(CollectTest, FirstConfigsAreMeasuredFirstAndOnce) {
  options.search_space.sample_size = 10;
  const auto space = *family->space(null_problem(64));
  const Config good = space->enumerable()->unrank(40);
  const Config other = space->enumerable()->unrank(50);
  Config illegal = good;
  illegal.words[0] = 7;
  Config foreign = good;
  foreign.schema ^= 1U;
  options.first = [&](const Problem& asked) {
    EXPECT_EQ(asked, null_problem(64));
    return std::vector<Config>{good, illegal, foreign, other, good};
  };
  run({null_problem(64)});
  EXPECT_EQ(measurer->requests[0].config, good);
  EXPECT_EQ(measurer->requests[1].config, other);
  EXPECT_GE(measurer->requests.size(), 10U);
  EXPECT_LE(measurer->requests.size(), 12U);
  EXPECT_EQ(keys().size(), measurer->requests.size());
  // Without a sample only these are left.
  options.search_space.sample_size = 0;
  EXPECT_THAT(*select_configs(*family, null_problem(64), options), ElementsAre(good, other));
}

TEST_F(CollectTest, TheBestAreConfirmedInterleavedInTheirOwnContext) {
  options.search_space.sample_size = 30;
  options.confirm_top = 4;
  options.confirm_rounds = 6;
  const CollectResult result = run({null_problem(64), null_problem(700)});
  EXPECT_EQ(result.progress.measured, 68U);
  EXPECT_EQ(result.progress.planned, 68U);
  ASSERT_EQ(measurer->compared.size(), 2U);
  std::vector<std::pair<double, Config>> ordinary;
  std::vector<Config> confirmed;
  for (const Measurement& row : rows()) {
    if (row.problem != null_problem(700) || row.outcome != Outcome::kOk) {
      continue;
    }
    if ((row.flags & kFlagReference) != 0) {
      EXPECT_EQ(row.context.fidelity, kReferenceFidelity);
      EXPECT_EQ(row.metrics.at(0).samples, 6U);
      confirmed.push_back(row.config);
    } else {
      EXPECT_EQ(row.context.fidelity, 0);
      ordinary.emplace_back(row.metrics.at(0).value, row.config);
    }
  }
  std::sort(ordinary.begin(), ordinary.end());
  ASSERT_EQ(confirmed.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE(std::find(confirmed.begin(), confirmed.end(), ordinary[i].second), confirmed.end());
  }
  EXPECT_EQ(keys().size(), 68U);
  const Dataset previous = *read_dataset(path);
  options.previous = &previous;
  const CollectResult again = run({null_problem(64), null_problem(700)});
  EXPECT_EQ(again.progress.measured, 0U);
  EXPECT_EQ(again.progress.resumed, 68U);
  EXPECT_EQ(measurer->compared.size(), 2U);
}

TEST_F(CollectTest, TheBestOfAModelAreConfirmedBesideTheBest) {
  options.search_space.sample_size = 30;
  run({null_problem(700)});
  const std::vector<Config> by_time = fastest();
  std::vector<Config> ranked(by_time.begin() + 3, by_time.begin() + 10);
  std::filesystem::remove(path);
  options.first = [&](const Problem& /*problem*/) { return ranked; };
  options.confirm_top = 2;
  run({null_problem(700)});
  ASSERT_EQ(measurer->compared.size(), 1U);
  std::vector<Config> expected{by_time[0], by_time[1]};
  expected.insert(expected.end(), ranked.begin(), ranked.begin() + kComparedPicks);
  EXPECT_THAT(measurer->compared[0].second, testing::UnorderedElementsAreArray(expected));
}

TEST_F(CollectTest, RankedConfigsAreComparedWithTheBestOnce) {
  options.search_space.sample_size = 30;
  run({null_problem(64), null_problem(700)});
  const std::vector<Config> by_time = fastest();  // of 700
  std::vector<Config> ranked(by_time.begin() + 3, by_time.begin() + 10);
  Config unmeasured = ranked[2];
  unmeasured.words[0] = 7;
  ranked[2] = unmeasured;
  const RankedConfigs of_model = [&](const Problem& problem) {
    return problem == null_problem(700) ? ranked : std::vector<Config>();
  };
  const auto compare = [&] {
    const auto journal = open();
    return *compare_picks(*read_dataset(path), *measurer, *journal, of_model, 4, hooks);
  };
  EXPECT_EQ(compare(), 1U);
  ASSERT_EQ(measurer->compared.size(), 1U);
  EXPECT_EQ(measurer->compared[0].first, null_problem(700));
  EXPECT_THAT(measurer->compared[0].second,
              ElementsAre(by_time[0], ranked[0], ranked[1], ranked[3], ranked[4]));
  EXPECT_EQ(compare(), 0U);
  // Another model's configs are compared with the same best.
  std::swap(ranked[4], ranked[6]);
  EXPECT_EQ(compare(), 1U);
  EXPECT_THAT(measurer->compared[1].second, testing::Contains(ranked[4]));
  // A pick that is the best needs no comparison.
  ranked = by_time;
  EXPECT_EQ(compare(), 0U);
}

// Times of then and now can only be related by configs that both comparisons have.
TEST_F(CollectTest, ALargerComparisonIsRecordedWhole) {
  options.search_space.sample_size = 30;
  options.confirm_top = 3;
  run({null_problem(700)});
  const Dataset previous = *read_dataset(path);
  options.previous = &previous;
  options.confirm_top = 4;
  const CollectResult again = run({null_problem(700)});
  EXPECT_EQ(again.progress.measured, 4U);
  const Dataset all = *read_dataset(path);
  EXPECT_EQ(
      std::count_if(all.rows().begin(), all.rows().end(),
                    [](const Dataset::Row& row) { return (row.flags & kFlagReference) != 0; }),
      3 + 4);
  EXPECT_EQ(all.size(), 30U + 3U + 4U);
}

TEST_F(CollectTest, WithoutAWorkerNothingIsRecordedAndTheRunEnds) {
  measurer->no_worker = true;
  const auto journal = open();
  const std::vector<Problem> problems{null_problem(1)};
  const auto result = collect(*family, *measurer, *journal, problems, options, hooks);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, HasSubstr("no worker"));
  EXPECT_EQ(journal->row_count(), 0U);
}

TEST_F(CollectTest, ThePlanIsWhatACollectionDoes) {
  options.search_space.sample_size = 20;
  options.confirm_top = 2;
  const std::vector<Problem> problems{null_problem(13), null_problem(64), null_problem(64),
                                      null_problem(700)};
  auto plan = plan_collection(*family, problems, options, {}, nullptr, context);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->problems, 2U);
  EXPECT_EQ(plan->measurements, 44U);
  EXPECT_EQ(plan->already_done, 0U);
  EXPECT_GT(plan->estimated_seconds, 0);
  CollectOptions part = options;
  part.budget.measurements = 11;
  const auto quarter = plan_collection(*family, problems, part, {}, nullptr, context);
  EXPECT_EQ(quarter->measurements, 11U);
  EXPECT_DOUBLE_EQ(quarter->estimated_seconds, plan->estimated_seconds / 4);
  const CollectResult result = run(problems);
  EXPECT_EQ(result.progress.measured, plan->measurements);
  EXPECT_EQ(result.skipped, plan->skipped);
  const auto journal = open();
  plan = plan_collection(*family, problems, options, {}, journal.get(), context);
  EXPECT_EQ(plan->already_done, 40U);
}

TEST(CollectOptionsText, BudgetsHaveTheirUnit) {
  EXPECT_DOUBLE_EQ(*parse_budget("90s")->seconds, 90);
  EXPECT_DOUBLE_EQ(*parse_budget("15m")->seconds, 900);
  EXPECT_DOUBLE_EQ(*parse_budget("1.5h")->seconds, 5400);
  EXPECT_EQ(*parse_budget("500")->measurements, 500U);
  EXPECT_FALSE(parse_budget("500")->seconds);
  for (const char* bad : {"", "s", "-5", "-5s", "0", "0s", "5d", "1e999s", "nans", "5 s", "five"}) {
    const auto budget = parse_budget(bad);
    ASSERT_FALSE(budget) << bad;
    EXPECT_EQ(budget.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(budget.error().message, HasSubstr(concat("not '", bad, "'")));
  }
}

TEST(CollectOptionsText, SearchSpacesHaveThreeForms) {
  EXPECT_EQ(parse_search_space("DEFAULT")->sample_size, 64U);
  EXPECT_TRUE(parse_search_space("EXHAUSTIVE")->exhaustive);
  EXPECT_EQ(parse_search_space("SAMPLE:7")->sample_size, 7U);
  for (const char* bad : {"", "sample", "SAMPLE:", "SAMPLE:0", "SAMPLE:-1", "SAMPLE:x", "ALL"}) {
    EXPECT_FALSE(parse_search_space(bad)) << bad;
  }
}

}  // namespace
}  // namespace foretune
