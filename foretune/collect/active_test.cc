#include "foretune/collect/active.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/collect/testing/first_word_scorer.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

using testing_support::null_problem;

class ActiveTest : public testing::Test {
 protected:
  ActiveTest() { make({}); }

  void make(std::vector<std::pair<std::string, std::string>> parameters) {
    family = testing_support::null_with(std::move(parameters));
    Context context;
    context.machine = family->info().fingerprint.digest();
    measurer = make_local_measurer(family, {}, context);
  }
  std::unique_ptr<JournalWriter> open() {
    const DatasetHeader header{.family = "null",
                               .problem_type = kGemmProblem,
                               .config_schema = family->info().config_schema,
                               .fingerprint = family->info().fingerprint};
    return JournalWriter::open(path, header).value();
  }
  Result<CollectResult> try_run(const std::vector<Problem>& asked) {
    const auto journal = open();
    std::optional<Dataset> previous;
    if (journal->row_count() > 0) {
      previous = read_dataset(path).value();
      options.previous = &*previous;
    }
    auto result =
        collect_active(*family, *measurer, *journal, asked, options, active, train, hooks);
    options.previous = nullptr;
    return result;
  }
  CollectResult run(const std::vector<Problem>& asked) {
    auto result = try_run(asked);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : CollectResult{};
  }
  std::vector<std::uint64_t> keys() {
    const Dataset dataset = *read_dataset(path);
    std::vector<std::uint64_t> out;
    for (RowIndex i = 0; i < dataset.size(); ++i) {
      const Measurement row = dataset.measurement(i);
      out.push_back(resume_key(row.problem, row.config, row.context));
    }
    return out;
  }
  std::map<std::string, std::size_t> rows_of_problem() {
    const Dataset dataset = *read_dataset(path);
    std::map<std::string, std::size_t> out;
    for (const Dataset::Row& row : dataset.rows()) {
      ++out[dataset.problems()[row.problem].text()];
    }
    return out;
  }

  testing_support::TemporaryFolder folder;
  std::filesystem::path path = folder / "active.ftd";
  std::shared_ptr<const Family> family;
  std::unique_ptr<Measurer> measurer;
  CollectOptions options;
  ActiveOptions active{.measurements = 60, .rounds = 4};
  CollectHooks hooks;
  std::vector<std::size_t> trained_on;  // rows
  ActiveTrainer train =
      [this](const Dataset& measured,
             const std::function<bool()>& may_go_on) -> Result<std::unique_ptr<Scorer>> {
    trained_on.push_back(measured.size());
    EXPECT_TRUE(may_go_on());
    return std::make_unique<FirstWordScorer>(measured);
  };
  const std::vector<Problem> problems{null_problem(1), null_problem(64), null_problem(700)};
};

TEST_F(ActiveTest, MeasuresWhatWasAskedForInRounds) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
  hooks.on_progress = [&](const CollectProgress& progress) {
    seen.emplace_back(progress.round, progress.measured);
    EXPECT_EQ(progress.rounds, 4U);
    EXPECT_EQ(progress.planned, 60U);
  };
  const CollectResult result = run(problems);
  EXPECT_EQ(result.progress.measured, 60U);
  EXPECT_EQ(result.progress.round, 4U);
  EXPECT_EQ(result.progress.trainings, 3U);
  EXPECT_THAT(trained_on, testing::ElementsAre(18, 32, 46));
  ASSERT_EQ(seen.size(), 60U);
  EXPECT_THAT(seen.front(), Pair(1, 1));
  EXPECT_THAT(seen[17], Pair(1, 18));
  EXPECT_THAT(seen[18], Pair(2, 19));
  EXPECT_THAT(seen.back(), Pair(4, 60));
  const std::vector<std::uint64_t> all = keys();
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 60U) << "a config was measured twice";
  for (const auto& [text, rows] : rows_of_problem()) {
    EXPECT_EQ(rows, 20U) << text;
  }
}

TEST_F(ActiveTest, CountsProblemsWhoseConfigsWereAllMeasuredBeforeTheLastRound) {
  active.measurements = 100000;
  const CollectResult result = run({null_problem(1), null_problem(2)});
  EXPECT_EQ(result.progress.round, 4U);
  EXPECT_LT(result.progress.measured, 1000U);
  EXPECT_EQ(result.progress.problems_done, 2U);
}

TEST_F(ActiveTest, EveryPolicyMeasuresItsBudgetWithAtLeastTheMinimum) {
  for (const ActivePolicy& policy : active_policies()) {
    std::filesystem::remove(path);
    trained_on.clear();
    active.policy = policy;
    active.minimum = 5;
    EXPECT_EQ(run(problems).progress.measured, 60U) << policy.name;
    EXPECT_EQ(trained_on.size(), policy.wants_model() ? 3U : 0U) << policy.name;
    for (const auto& [text, rows] : rows_of_problem()) {
      EXPECT_GE(rows, 5U + 3U) << policy.name << ' ' << text;
    }
  }
}

TEST_F(ActiveTest, TheSameSeedGivesTheSameRowsAndAnotherOthers) {
  run(problems);
  const std::vector<std::uint64_t> first = keys();
  std::filesystem::remove(path);
  run(problems);
  EXPECT_EQ(keys(), first);
  std::filesystem::remove(path);
  options.seed = 43;
  run(problems);
  EXPECT_NE(keys(), first);
}

TEST_F(ActiveTest, TheModelChoosesTheBestPredictions) {
  active.policy = find_active_policy("best").value();
  train = [](const Dataset& /*measured*/,
             const std::function<bool()>& /*may_go_on*/) -> Result<std::unique_ptr<Scorer>> {
    // Nothing was ever measured of an unknown first word, and 0 is the best score.
    return std::make_unique<FirstWordScorer>(Dataset(DatasetHeader{}));
  };
  run(problems);
  const std::vector<std::uint64_t> flat = keys();
  std::filesystem::remove(path);
  train = [](const Dataset& measured,
             const std::function<bool()>& /*may_go_on*/) -> Result<std::unique_ptr<Scorer>> {
    return std::make_unique<FirstWordScorer>(measured);
  };
  run(problems);
  const std::vector<std::uint64_t> learned = keys();
  // The first round knows no model.
  EXPECT_TRUE(std::equal(flat.begin(), flat.begin() + 18, learned.begin()));
  EXPECT_NE(flat, learned);
}

TEST_F(ActiveTest, InterruptedAnywhereItReachesTheSameSet) {
  run(problems);
  const std::vector<std::uint64_t> reference = keys();
  for (const std::uint64_t step : {1U, 7U, 18U, 59U}) {
    std::filesystem::remove(path);
    options.budget.measurements = step;
    std::uint64_t before = 0;
    for (int runs = 0; before < 60; ++runs) {
      ASSERT_LT(runs, 61);
      const CollectResult result = run(problems);
      EXPECT_EQ(result.progress.resumed, before);
      EXPECT_EQ(result.progress.measured, std::min<std::uint64_t>(step, 60 - before));
      before += result.progress.measured;
      EXPECT_EQ(result.stopped_by_budget, before < 60);
    }
    options.budget = {};
    EXPECT_EQ(keys(), reference) << step;
    EXPECT_EQ(run(problems).progress.measured, 0U);
  }
}

TEST_F(ActiveTest, RowsOfAnotherCollectionAreNotLearnedFrom) {
  run(problems);
  const std::vector<std::uint64_t> alone = keys();
  std::filesystem::remove(path);
  {
    const auto journal = open();
    CollectOptions uniform{.seed = 7};
    uniform.search_space.sample_size = 9;
    ASSERT_TRUE(collect(*family, *measurer, *journal, problems, uniform, {}));
  }
  trained_on.clear();
  const CollectResult result = run(problems);
  EXPECT_THAT(trained_on, testing::ElementsAre(18, 32, 46));
  EXPECT_EQ(result.progress.measured + result.progress.resumed, 60U);
  const std::vector<std::uint64_t> both = keys();
  const std::set<std::uint64_t> found(both.begin(), both.end());
  EXPECT_TRUE(std::all_of(alone.begin(), alone.end(),
                          [&](std::uint64_t key) { return found.contains(key); }));
}

TEST_F(ActiveTest, RepeatedProblemsAreLeftOutWithTheReason) {
  const CollectResult result = run({null_problem(1), null_problem(64), null_problem(1)});
  EXPECT_THAT(result.skipped, UnorderedElementsAre(Pair(HasSubstr("repeated"), 1)));
  EXPECT_EQ(result.progress.measured, 60U);
}

TEST_F(ActiveTest, ASmallSpaceIsMeasuredWholeAndEnds) {
  active.measurements = 1'000'000;
  active.rounds = 2;
  active.first_share = 1e-9;
  const CollectResult result = run({null_problem(64)});
  EXPECT_EQ(result.progress.measured, (*family->space(null_problem(64)))->enumerable()->count());
  EXPECT_FALSE(result.stopped_by_budget);
}

TEST_F(ActiveTest, FailedMeasurementsCountAndAreNoIncumbents) {
  make({{"wrong", "1"}});
  const CollectResult result = run(problems);
  EXPECT_EQ(result.progress.measured, 60U);
  EXPECT_TRUE(trained_on.empty()) << "there was nothing to learn from";
}

TEST_F(ActiveTest, ARequestToStopIsHeardWhileTraining) {
  std::atomic<bool> stop = false;
  hooks.stop = &stop;
  train = [&](const Dataset& /*measured*/,
              const std::function<bool()>& may_go_on) -> Result<std::unique_ptr<Scorer>> {
    stop = true;
    EXPECT_FALSE(may_go_on());
    return fail(ErrorCode::kCancelled, "stopped");
  };
  const CollectResult result = run(problems);
  EXPECT_TRUE(result.stopped_by_request);
  EXPECT_EQ(result.progress.measured, 18U);
}

TEST_F(ActiveTest, ATimeBudgetCountsTrainingToo) {
  double now = 0;
  hooks.now_s = [&] { return now; };
  options.budget.seconds = 10;
  train = [&](const Dataset& measured,
              const std::function<bool()>& /*may_go_on*/) -> Result<std::unique_ptr<Scorer>> {
    now += 6;
    return std::make_unique<FirstWordScorer>(measured);
  };
  const CollectResult result = run(problems);
  EXPECT_TRUE(result.stopped_by_budget);
  EXPECT_EQ(result.progress.trainings, 2U);
  EXPECT_DOUBLE_EQ(result.progress.training_s, 12);
  EXPECT_EQ(result.progress.measured, 32U);
}

TEST_F(ActiveTest, ErrorsOfTheTrainerEndIt) {
  train = [](const Dataset& /*measured*/,
             const std::function<bool()>& /*may_go_on*/) -> Result<std::unique_ptr<Scorer>> {
    return fail(ErrorCode::kUnsupported, "no table describes these configs");
  };
  const auto result = try_run(problems);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("no table"));
}

TEST_F(ActiveTest, BadOptionsAreErrors) {
  const auto message = [&] {
    const auto result = try_run(problems);
    return result ? std::string("ran") : result.error().message;
  };
  active.measurements = 11;
  EXPECT_THAT(message(), HasSubstr("11 measurements are too few for 3 problems with at least 4"));
  active.measurements = 12;
  EXPECT_EQ(message(), "ran");
  active.first_share = 1.5;
  EXPECT_THAT(message(), HasSubstr("share of the first round is from 0 to 1, not 1.5"));
  active.first_share = 1;
  active.rounds = 0;
  EXPECT_THAT(message(), HasSubstr("at least one round"));
  active.rounds = 2;
  options.budget.seconds = 1;
  EXPECT_THAT(message(), HasSubstr("needs a clock"));
  options.budget = {};
  const auto journal = open();
  const auto without =
      collect_active(*family, *measurer, *journal, problems, options, active, train, hooks);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("12 rows"));
}

TEST_F(ActiveTest, OneRoundIsTheStratifiedSample) {
  active.rounds = 1;
  const CollectResult result = run(problems);
  EXPECT_EQ(result.progress.trainings, 0U);
  const std::vector<std::uint64_t> single = keys();
  std::filesystem::remove(path);
  const auto journal = open();
  options.search_space.sample_size = 20;
  ASSERT_TRUE(collect(*family, *measurer, *journal, problems, options, {}));
  EXPECT_EQ(keys(), single);
}

}  // namespace
}  // namespace foretune
