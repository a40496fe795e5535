#include "foretune/evaluate/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "foretune/base/statistics.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const EvaluateOptions kQuick{.bootstrap_samples = 50};

// Returns the options for a model that was trained on these data.
EvaluateOptions quick_after(const Dataset& training) {
  EvaluateOptions options = kQuick;
  options.training = &training;
  return options;
}

std::string warnings_of(const Evaluation& evaluation) {
  std::string out;
  for (const std::string& warning : evaluation.warnings) {
    out += warning + "\n";
  }
  return out;
}

Dataset training_of(Dataset dataset) {
  dataset.mutable_header().role = DatasetRole::kTraining;
  return dataset;
}

TEST(Evaluate, AgreesWithPlainFormulas) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Dataset dataset = random_dataset(25, 15, true, rng);
    const std::vector<double> scores = noisy_scores(dataset, 0.5, rng);
    const std::vector<RankedProblem> ranked = rank_with_scores(dataset, scores);
    const Result<Evaluation> out = evaluate(dataset, ranked, nullptr, kQuick);
    ASSERT_TRUE(out) << out.error().message;
    const MeasuredTimes times(dataset);
    std::vector<double> efficiencies;
    std::vector<double> best_of_five;
    std::vector<double> correlations;
    double hits3 = 0;
    double squares = 0;
    double count = 0;
    for (const RankedProblem& entry : ranked) {
      efficiencies.push_back(
          times.compare(entry.problem, *times.find(entry.problem, entry.configs[0])).efficiency);
      const MeasuredCandidate* fastest = nullptr;
      bool hit = false;
      for (std::size_t i = 0; i < std::min<std::size_t>(5, entry.configs.size()); ++i) {
        const MeasuredCandidate* candidate = times.find(entry.problem, entry.configs[i]);
        hit = hit || (i < 3 && times.compare(entry.problem, *candidate).is_tie);
        const auto rank = [](const MeasuredCandidate& each) {
          return std::pair(each.state, each.time_ns);
        };
        if (candidate->state <= MeasuredState::kBound &&
            (fastest == nullptr || rank(*candidate) < rank(*fastest))) {
          fastest = candidate;
        }
      }
      best_of_five.push_back(
          fastest == nullptr ? 0 : times.compare(entry.problem, *fastest).efficiency);
      hits3 += hit ? 1 : 0;
      std::vector<double> predicted;
      std::vector<double> measured;
      for (std::size_t i = 0; i < entry.configs.size(); ++i) {
        const MeasuredCandidate* candidate = times.find(entry.problem, entry.configs[i]);
        if (candidate->state == MeasuredState::kOk) {
          predicted.push_back(entry.scores[i]);
          measured.push_back(std::log(candidate->time_ns));
        }
      }
      const double shift = mean(predicted) - mean(measured);
      for (std::size_t i = 0; i < predicted.size(); ++i) {
        squares += std::pow(predicted[i] - measured[i] - shift, 2);
        count += 1;
      }
      if (const double rho = spearman(predicted, measured); !std::isnan(rho)) {
        correlations.push_back(rho);
      }
    }
    EXPECT_EQ(out->model.efficiency, efficiencies);
    EXPECT_NEAR(out->model.mean_efficiency.value, mean(efficiencies), 1e-12);
    EXPECT_NEAR(out->model.p10_efficiency.value, quantile(efficiencies, 0.1), 1e-12);
    EXPECT_NEAR(out->model.top5_measured_efficiency.value, mean(best_of_five), 1e-12);
    EXPECT_NEAR(out->model.top3_hit, hits3 / static_cast<double>(ranked.size()), 1e-12);
    EXPECT_NEAR(out->rmse_log, std::sqrt(squares / count), 1e-9);
    EXPECT_NEAR(out->spearman_mean, mean(correlations), 1e-12);
    EXPECT_NEAR(out->spearman_median, median(correlations), 1e-12);
    EXPECT_TRUE(std::isnan(out->rmse_log_absolute));
  }
}

TEST(Evaluate, PerfectScoresArePerfect) {
  Rng rng(2);
  const Dataset dataset = random_dataset(30, 12, false, rng);
  const auto ranked = rank_with_scores(dataset, noisy_scores(dataset, 0, rng));
  const Evaluation out = *evaluate(dataset, ranked, nullptr, kQuick);
  for (const Interval& interval : {out.model.mean_efficiency, out.model.min_efficiency,
                                   out.model.geomean_efficiency, out.model.p10_efficiency}) {
    EXPECT_DOUBLE_EQ(interval.value, 1);
    EXPECT_DOUBLE_EQ(interval.low, 1);
    EXPECT_DOUBLE_EQ(interval.high, 1);
  }
  EXPECT_DOUBLE_EQ(out.model.top1_hit, 1);
  EXPECT_NEAR(out.rmse_log, 0, 1e-9);
  EXPECT_NEAR(out.spearman_mean, 1, 1e-9);
  EXPECT_TRUE(out.worst.empty()) << "nothing to see";
  for (const PickerResult& baseline : out.baselines) {
    EXPECT_LE(baseline.mean_efficiency.value, 1);
    EXPECT_GE(baseline.model_gain.value, 0);
    EXPECT_GE(baseline.model_speedup, 1 - 1e-12);
  }
}

TEST(Evaluate, AllTimesEqualMeansEveryPickTies) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 5; ++m) {
    for (std::int32_t c = 0; c < 6; ++c) {
      add_sample(dataset, sample_problem(m), sample_config(c), 100);
    }
  }
  std::vector<double> scores(dataset.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<double>(i % 6);
  }
  const Evaluation out = *evaluate(dataset, rank_with_scores(dataset, scores), nullptr, kQuick);
  EXPECT_DOUBLE_EQ(out.model.top1_hit, 1);
  EXPECT_DOUBLE_EQ(out.model.mean_efficiency.value, 1);
  EXPECT_TRUE(std::isnan(out.spearman_mean)) << "constant times have no order";
}

TEST(Evaluate, OneConfigPerProblem) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 100);
  const Evaluation out =
      *evaluate(dataset, rank_with_scores(dataset, std::vector<double>{5}), nullptr, kQuick);
  EXPECT_EQ(out.model.problems, 1U);
  EXPECT_DOUBLE_EQ(out.model.mean_efficiency.value, 1);
  EXPECT_EQ(out.rmse_log, 0);
}

TEST(Evaluate, FailuresAndMissingPicksCountZeroAndAreSaid) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 4; ++m) {
    add_sample(dataset, sample_problem(m), sample_config(0), 100);
    add_sample(dataset, sample_problem(m), sample_config(1), 0, {.outcome = Outcome::kWrongResult});
    add_sample(dataset, sample_problem(m), sample_config(2), 200, {.outcome = Outcome::kCensored});
  }
  (void)dataset.intern_config(sample_config(3));
  const auto pick = [](std::uint32_t problem, std::vector<std::uint32_t> configs) {
    RankedProblem ranked;
    ranked.problem = problem;
    ranked.configs = std::move(configs);
    return ranked;
  };
  const Evaluation out = *evaluate(
      dataset, {pick(3, {2, 0}), pick(0, {1, 0}), pick(1, {3}), pick(2, {})}, nullptr, kQuick);
  EXPECT_EQ(out.model.efficiency, (std::vector<double>{0, 0, 0, 0.5}));
  EXPECT_EQ(out.model.failed, 3U);
  EXPECT_EQ(out.model.bounds, 1U);
  EXPECT_EQ(out.unmeasured_picks, 2U);
  EXPECT_EQ(out.model.geomean_efficiency.value, 0);
  ASSERT_EQ(out.worst.size(), 4U);
  EXPECT_EQ(out.worst[0].note, "wrong result");
  EXPECT_LT(out.worst[0].pick_ns, 0);
  EXPECT_EQ(out.worst[1].note, "not measured");
  EXPECT_EQ(out.worst[2].note, "no pick");
  EXPECT_EQ(out.worst[3].note, "stopped early");
  EXPECT_EQ(out.worst[3].pick_ns, 200);
  EXPECT_THAT(warnings_of(out), HasSubstr("3 of 4 picks did not run and count as 0"));
  EXPECT_THAT(warnings_of(out), HasSubstr("1 of 4 picks was stopped early"));
  EXPECT_THAT(warnings_of(out), HasSubstr("2 of 4 picks were not measured"));
}

TEST(Evaluate, WorstCasesNamePickAndBest) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 3; ++m) {
    for (std::int32_t c = 0; c < 4; ++c) {
      add_sample(dataset, sample_problem(m), sample_config(c),
                 100.0 + 100 * c * static_cast<double>(m));
    }
  }
  // Picks: config 2 of each.
  std::vector<RankedProblem> ranked(3);
  for (std::uint32_t p = 0; p < 3; ++p) {
    ranked[p].problem = p;
    ranked[p].configs = {2, 0};
  }
  EvaluateOptions options = kQuick;
  options.top_n_worst = 2;
  const Evaluation out = *evaluate(dataset, ranked, nullptr, options);
  ASSERT_EQ(out.worst.size(), 2U);
  EXPECT_EQ(out.worst[0].problem, sample_problem(3).text());
  EXPECT_EQ(out.worst[0].pick, "c=2 d=0");
  EXPECT_EQ(out.worst[0].best, "c=0 d=0");
  EXPECT_EQ(out.worst[0].pick_ns, 700);
  EXPECT_EQ(out.worst[0].best_ns, 100);
  EXPECT_EQ(out.worst[0].rank, 3U);
  EXPECT_EQ(out.worst[0].candidates, 4U);
  EXPECT_DOUBLE_EQ(out.worst[0].efficiency, 1.0 / 7);
  options.top_n_worst = 0;
  EXPECT_TRUE(evaluate(dataset, ranked, nullptr, options)->worst.empty());
}

TEST(Evaluate, SlicesFollowTheLimitsOfTheRegimes) {
  Dataset dataset(sample_header());
  const std::vector<std::int64_t> ms{1, 2, 16, 17, 128, 129, 1024, 1025};
  for (const std::int64_t m : ms) {
    add_sample(dataset, sample_problem(m, 64, m == 1 ? 64 : 65), sample_config(0), 2000);
  }
  const Evaluation out = *evaluate(
      dataset, rank_with_scores(dataset, std::vector<double>(ms.size(), 0)), nullptr, kQuick);
  std::map<std::string, std::size_t> counts;
  for (const Slice& slice : out.slices) {
    counts[slice.dimension + ": " + slice.value] = slice.problems;
    EXPECT_DOUBLE_EQ(slice.mean_efficiency, 1);
  }
  const std::map<std::string, std::size_t> expected{
      {"m regime: 1", 1},           {"m regime: 2 to 16", 2},    {"m regime: 17 to 128", 2},
      {"m regime: 129 to 1024", 2}, {"m regime: above 1024", 1}, {"k depth: up to 64", 1},
      {"k depth: 65 to 512", 7},    {"operation: mm", 8},        {"dtype: f32", 8},
      {"best time: under 10 us", 8}};
  std::erase_if(counts, [](const auto& entry) {  // slices_test.cc has the others
    return entry.first.starts_with("shape") || entry.first.starts_with("layout") ||
           entry.first.find("(CK)") != std::string::npos;
  });
  EXPECT_EQ(counts, expected);
}

TEST(Evaluate, RelativeModelsAreJudgedWithoutTheirConstant) {
  Rng rng(3);
  const Dataset dataset = random_dataset(10, 20, false, rng);
  std::vector<double> scores = noisy_scores(dataset, 0.1, rng);
  const Evaluation plain = *evaluate(dataset, rank_with_scores(dataset, scores), nullptr, kQuick);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] += 100.0 * dataset.rows()[i].problem;
  }
  EXPECT_TRUE(std::isnan(plain.within_stated_error));
  Model model;
  model.problem_type = kGemmProblem;
  model.target = "log";
  model.residual_std = 0.1;
  const Evaluation shifted = *evaluate(dataset, rank_with_scores(dataset, scores), &model, kQuick);
  EXPECT_LT(shifted.within_twice_stated_error, 0.2) << "an absolute model has no excuse";
  model.target = "relative-log";
  const Evaluation stated = *evaluate(dataset, rank_with_scores(dataset, scores), &model, kQuick);
  EXPECT_NEAR(stated.within_stated_error, 0.683, 0.08);
  EXPECT_NEAR(stated.within_twice_stated_error, 0.954, 0.04);
  model.residual_std = 0.05;
  const Evaluation boasting = *evaluate(dataset, rank_with_scores(dataset, scores), &model, kQuick);
  EXPECT_NEAR(boasting.within_twice_stated_error, stated.within_stated_error, 1e-12);
  EXPECT_NEAR(plain.rmse_log, 0.1, 0.02);
  EXPECT_NEAR(shifted.rmse_log, plain.rmse_log, 1e-9);
  EXPECT_GT(shifted.rmse_log_absolute, 100) << "an absolute model has no excuse";
  EXPECT_NEAR(shifted.spearman_mean, plain.spearman_mean, 1e-12);
  EXPECT_EQ(plain.points.size(), dataset.size());
}

TEST(Evaluate, WarnsOfALeak) {
  Rng rng(4);
  const Dataset dataset = random_dataset(30, 5, false, rng);
  Dataset training = training_of(random_dataset(30, 5, false, rng));
  const EvaluateOptions options = quick_after(training);
  const auto ranked = rank_with_scores(dataset, noisy_scores(dataset, 0.1, rng));
  EXPECT_THAT(warnings_of(*evaluate(dataset, ranked, nullptr, options)), Not(HasSubstr("leak")));
  // The same sizes with another layout are the same group.
  const GemmProblem seen = *GemmProblem::from(dataset.problems()[7]);
  add_sample(
      training,
      GemmProblem::create({.m = seen.m(), .n = seen.n(), .k = seen.k(), .layout = GemmLayout::kRcr})
          ->to_problem(),
      sample_config(0), 10);
  const Evaluation leaking = *evaluate(dataset, ranked, nullptr, options);
  EXPECT_THAT(warnings_of(leaking), HasSubstr("1 of 30 problems share their group"));
  EXPECT_EQ(leaking.unseen_problems, 29U);
}

TEST(Evaluate, WarnsWhenFoldsShareAGroup) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 3; ++m) {
    for (const GemmLayout layout : {GemmLayout::kRrr, GemmLayout::kRcr}) {
      add_sample(dataset,
                 GemmProblem::create({.m = m, .n = 8, .k = 8, .layout = layout})->to_problem(),
                 sample_config(0), 10);
    }
  }
  const auto ranked = rank_with_scores(dataset, std::vector<double>(6, 0));
  EvaluateOptions options = kQuick;
  options.fold_of_problem = {0, 0, 1, 1, 0, 1};
  const Evaluation out = *evaluate(dataset, ranked, nullptr, options);
  EXPECT_THAT(warnings_of(out), HasSubstr("2 of 6 problems have members of their group"));
  options.fold_of_problem = {0, 0, 1, 1, 0, 0};
  EXPECT_THAT(warnings_of(*evaluate(dataset, ranked, nullptr, options)), Not(HasSubstr("leak")));
}

TEST(Evaluate, WarnsOfWhatMakesFiguresDoubtful) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 100, {.flags = kFlagThrottled});
  add_sample(dataset, sample_problem(1), sample_config(1), 90, {.outcome = Outcome::kCensored});
  add_sample(dataset, sample_problem(2), sample_config(0), 100, {.threads = 2});
  add_sample(dataset, sample_problem(3), sample_config(0), 0, {.outcome = Outcome::kCrashed});
  Model model;
  model.problem_type = kGemmProblem;
  model.fingerprint.device = "another device";
  model.data_fingerprint = dataset.fingerprint();
  const Evaluation out = *evaluate(
      dataset, rank_with_scores(dataset, std::vector<double>{0, 1, 0, 0}), &model, kQuick);
  const std::string warnings = warnings_of(out);
  for (const char* expected :
       {"trained on another machine (another device)", "Only 2 problems", "fewer than 256",
        "On 1 of 2 problems a config that was stopped early might be faster",
        "leave out 1 problem of the data set: 1 without any measured time, 0 not ranked",
        "2 contexts", "loaded or throttled", "trained on this very data set"}) {
    EXPECT_THAT(warnings, HasSubstr(expected));
  }
  EXPECT_EQ(out.skipped_problems, 1U);
}

TEST(Evaluate, IsQuietAboutGoodData) {
  Rng rng(5);
  const Dataset dataset = random_dataset(25, 300, false, rng);
  const Dataset training = training_of(random_dataset(20, 50, false, rng));
  const auto ranked = rank_with_scores(dataset, noisy_scores(dataset, 0.1, rng));
  const Evaluation out = *evaluate(dataset, ranked, nullptr, quick_after(training));
  // Sizes are random: a group in common would be chance, and rightly warned of.
  if (out.unseen_problems == 25) {
    EXPECT_TRUE(out.warnings.empty()) << warnings_of(out);
  }
}

TEST(Evaluate, ASpaceWithFewConfigsIsNoReasonToWarn) {
  Dataset dataset(sample_header());
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema = sample_schema();
  definition.domains = {{0, 1, 2}, {0}};
  dataset.mutable_header().space_text = definition.text();
  for (std::int64_t m = 1; m <= 25; ++m) {
    for (std::int32_t c = 0; c < (m == 25 ? 2 : 3); ++c) {
      add_sample(dataset, sample_problem(m), sample_config(c), 100 + c);
    }
  }
  const Evaluation out = *evaluate(
      dataset, rank_with_scores(dataset, std::vector<double>(dataset.size(), 0)), nullptr, kQuick);
  EXPECT_THAT(warnings_of(out), HasSubstr("1 of 25 problems have fewer than 256"));
}

TEST(Evaluate, DataWithoutASpaceLackNoConfigThatIsKnown) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 25; ++m) {
    for (std::int32_t c = 0; c < 3; ++c) {
      add_sample(dataset, sample_problem(m), sample_config(c), 100 + c);
    }
  }
  const auto warnings = [&] {
    return warnings_of(*evaluate(dataset,
                                 rank_with_scores(dataset, std::vector<double>(dataset.size(), 0)),
                                 nullptr, kQuick));
  };
  EXPECT_THAT(warnings(), Not(HasSubstr("fewer than 256")));
  add_sample(dataset, sample_problem(25), sample_config(3), 200);
  EXPECT_THAT(warnings(), HasSubstr("24 of 25 problems have fewer than 256 measured configs; if"));
}

TEST(Evaluate, ProblemsThatWereNotRankedAreLeftOutAloud) {
  Rng rng(6);
  const Dataset dataset = random_dataset(10, 5, false, rng);
  auto ranked = rank_with_scores(dataset, noisy_scores(dataset, 0, rng));
  ranked.erase(ranked.begin() + 3);
  const Evaluation out = *evaluate(dataset, ranked, nullptr, kQuick);
  EXPECT_EQ(out.model.problems, 9U);
  EXPECT_THAT(out.model.problem_ids, Not(Contains(3U)));
  EXPECT_THAT(warnings_of(out), HasSubstr("0 without any measured time, 1 not ranked"));
}

TEST(Evaluate, RefusesBadInput) {
  Rng rng(7);
  const Dataset dataset = random_dataset(3, 3, false, rng);
  EXPECT_EQ(evaluate(dataset, {}, nullptr, kQuick).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(evaluate(Dataset(sample_header()), {}, nullptr, kQuick));
  std::vector<RankedProblem> ranked(1);
  ranked[0].problem = 99;
  EXPECT_THAT(evaluate(dataset, ranked, nullptr, kQuick).error().message, HasSubstr("problem 99"));
  ranked[0].problem = 0;
  ranked[0].configs = {77};
  EXPECT_THAT(evaluate(dataset, ranked, nullptr, kQuick).error().message, HasSubstr("config 77"));
  ranked[0].configs = {0};
  ranked[0].scores = {1, 2};
  EXPECT_THAT(evaluate(dataset, ranked, nullptr, kQuick).error().message, HasSubstr("2 scores"));
  ranked[0].scores.clear();
  ranked.push_back(ranked[0]);
  EXPECT_THAT(evaluate(dataset, ranked, nullptr, kQuick).error().message, HasSubstr("twice"));
  ranked.pop_back();
  EvaluateOptions options = kQuick;
  options.fold_of_problem = {0};
  EXPECT_THAT(evaluate(dataset, ranked, nullptr, options).error().message, HasSubstr("folds"));
  options.fold_of_problem.clear();
  Dataset training = random_dataset(2, 2, false, rng);
  training.mutable_header().config_schema.version = 9;
  options.training = &training;
  EXPECT_EQ(evaluate(dataset, ranked, nullptr, options).error().code, ErrorCode::kMismatch);

  Dataset failed(sample_header());
  add_sample(failed, sample_problem(1), sample_config(0), 0, {.outcome = Outcome::kCrashed});
  const auto none = rank_with_scores(failed, std::vector<double>{1});
  EXPECT_THAT(evaluate(failed, none, nullptr, kQuick).error().message, HasSubstr("measured time"));
}

TEST(Evaluate, TheSameSeedGivesTheSameNumbers) {
  Rng rng(8);
  const Dataset dataset = random_dataset(40, 200, true, rng);
  const auto ranked = rank_with_scores(dataset, noisy_scores(dataset, 0.4, rng));
  const auto json = [&](std::uint64_t seed) {
    EvaluateOptions options = kQuick;
    options.seed = seed;
    return report_json(*evaluate(dataset, ranked, nullptr, options), "n", "c", {});
  };
  EXPECT_EQ(json(1), json(1));
  EXPECT_NE(json(1), json(2));
}

}  // namespace
}  // namespace foretune
