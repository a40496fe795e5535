#include "foretune/tune/tune_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/null_layers.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::HasSubstr;

class TuneProblemTest : public testing::Test {
 protected:
  void make(std::vector<std::pair<std::string, std::string>> parameters) {
    family = testing_support::null_with(std::move(parameters));
    context.machine = family->info().fingerprint.digest();
    measurer = make_local_measurer(family, {}, context);
    hooks.now_s = [this] { return now_s; };
    hooks.on_progress = [this](const CollectProgress&) { now_s += 1; };
  }
  Result<TuneResult> tune(JournalWriter* journal = nullptr) {
    return tune_problem(*family, *measurer, journal, problem, options, hooks);
  }
  // The shortest time of all configs.
  double best_of_all() {
    const auto space = family->space(problem);
    EXPECT_TRUE(space);
    const EnumerableSpace& listed = *(*space)->enumerable();
    double best = 1e30;
    for (std::uint64_t i = 0; i < listed.count(); ++i) {
      const Measurement measurement =
          measurer->measure({.problem = problem, .config = listed.unrank(i)});
      if (measurement.outcome == Outcome::kOk) {
        best = std::min(best, measurement.metrics.at(0).value);
      }
    }
    return best;
  }

  Problem problem = GemmProblem::create({.m = 300, .n = 256, .k = 512})->to_problem();
  Context context;
  std::shared_ptr<const Family> family;
  std::unique_ptr<Measurer> measurer;
  TuneOptions options;
  CollectHooks hooks;
  double now_s = 0;
};

TEST_F(TuneProblemTest, TryingEverythingFindsTheBest) {
  make({});
  options.strategy = "exhaustive";
  const auto result = tune();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->exhausted);
  EXPECT_EQ(result->finalists.size(), 8U);
  EXPECT_DOUBLE_EQ(result->finalists.front().time_ns, best_of_all());
  EXPECT_TRUE(std::is_sorted(
      result->finalists.begin(), result->finalists.end(),
      [](const TunedConfig& a, const TunedConfig& b) { return a.time_ns < b.time_ns; }));
  ASSERT_TRUE(result->legal_configs);
  EXPECT_GE(result->progress.measured, *result->legal_configs);
}

TEST_F(TuneProblemTest, LocalSearchComesCloseWithFarFewerMeasurements) {
  make({});
  options.budget.measurements = 120;
  const auto result = tune();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->exhausted);
  EXPECT_LT(result->finalists.front().time_ns, 1.15 * best_of_all());
}

TEST_F(TuneProblemTest, KeepsTimeForTheFinalComparison) {
  make({});
  options.strategy = "random";
  options.budget.seconds = 100;
  const auto result = tune();
  ASSERT_TRUE(result) << result.error().message;
  // A second each: 85 of the search, at most nine of the comparison.
  EXPECT_GE(result->progress.measured, 85U + 8U);
  EXPECT_LE(result->progress.measured, 85U + 9U);
  hooks.now_s = nullptr;
  const auto without_clock = tune();
  ASSERT_FALSE(without_clock);
  EXPECT_EQ(without_clock.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(TuneProblemTest, TheSameSeedRepeatsTheSearch) {
  make({});
  options.strategy = "random";
  options.budget.measurements = 12;
  const auto one = tune();
  const auto same = tune();
  options.seed = 7;
  const auto other = tune();
  ASSERT_TRUE(one && same && other);
  const auto configs = [](const TuneResult& result) {
    std::vector<Config> out;
    for (const TunedConfig& tuned : result.finalists) {
      out.push_back(tuned.config);
    }
    return out;
  };
  EXPECT_TRUE(configs(*one) == configs(*same));
  EXPECT_FALSE(configs(*one) == configs(*other));
}

TEST_F(TuneProblemTest, SurvivesFaultsAndKeepsEveryMeasurement) {
  make({{"seed", "3"}, {"wrong", "0.4"}, {"prepare_fail", "0.2"}});
  const testing_support::TemporaryFolder folder;
  const DatasetHeader header{.family = "null",
                             .problem_type = kGemmProblem,
                             .config_schema = family->info().config_schema,
                             .fingerprint = family->info().fingerprint};
  auto journal = JournalWriter::open(folder / "tuned.ftd", header);
  ASSERT_TRUE(journal);
  options.budget.measurements = 60;
  const auto result = tune(journal->get());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->progress.by_outcome[static_cast<std::size_t>(Outcome::kWrongResult)], 0U);
  EXPECT_EQ((*journal)->row_count(), result->progress.measured);
  Context reference = context;
  reference.fidelity = kReferenceFidelity;
  for (const TunedConfig& tuned : result->finalists) {
    EXPECT_TRUE((*journal)->contains(problem, tuned.config, reference));
  }
}

TEST_F(TuneProblemTest, SaysWhyNothingWasFound) {
  make({{"wrong", "1"}});
  options.budget.measurements = 10;
  const auto wrong = tune();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(wrong.error().message, HasSubstr("no config of 10 measured ones"));
  options.strategy = "model";
  EXPECT_FALSE(tune());
  options.strategy = "guessing";
  EXPECT_FALSE(tune());
}

TEST_F(TuneProblemTest, EndsWhenAskedTo) {
  make({});
  std::atomic<bool> stop = false;
  hooks.stop = &stop;
  hooks.on_progress = [&](const CollectProgress& progress) { stop = progress.measured >= 5; };
  const auto result = tune();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->stopped_by_request);
  EXPECT_FALSE(result->finalists.empty());
  EXPECT_LT(result->progress.measured, 20U);
}

TEST_F(TuneProblemTest, SequencesAreTunedWithoutAList) {
  make({{"sequence", "yes"}, {"noise", "0"}});
  const Config exact = family->default_configs(problem).at(0);
  ASSERT_EQ(exact.words.size(), null_layers(problem));
  options.budget.measurements = 200;
  for (const char* strategy : {"local", "random", "evolution", "annealing", "stratified", "de"}) {
    options.strategy = strategy;
    const auto result = tune();
    ASSERT_TRUE(result) << strategy << ": " << result.error().message;
    EXPECT_FALSE(result->legal_configs);
    EXPECT_GE(result->progress.measured, 200U) << strategy;
    ASSERT_TRUE(result->by_default);
    EXPECT_EQ(result->by_default->config, exact);
    const TunedConfig& best = result->finalists.front();
    EXPECT_DOUBLE_EQ(best.time_ns, null_layers_time_ns(problem, best.config));
    EXPECT_LT(best.time_ns, 0.9 * result->by_default->time_ns) << strategy;
    EXPECT_THAT(result->progress.best_config,
                HasSubstr(concat("(", exact.words.size(), " words)")));
  }
  options.strategy = "exhaustive";
  const auto all = tune();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("too large to be listed"));
}

TEST_F(TuneProblemTest, SequencesOfFewLayersAreTriedWholly) {
  make({{"sequence", "yes"}, {"noise", "0"}});
  problem = GemmProblem::create({.m = 1, .n = 1, .k = 1})->to_problem();
  options.strategy = "exhaustive";
  const auto result = tune();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->legal_configs, 46656U);
  EXPECT_TRUE(result->exhausted);
  EXPECT_DOUBLE_EQ(result->finalists.front().time_ns, best_of_all());
}

}  // namespace
}  // namespace foretune
