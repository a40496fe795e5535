#include "foretune/evaluate/internal/picker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "foretune/base/statistics.h"
#include "foretune/evaluate/testing/evaluation_samples.h"

namespace foretune::evaluate_internal {
namespace {

// One problem with configs 0, 1, 2, ... of these times; negative: a crash.
Dataset dataset_of(const std::vector<double>& times_ns) {
  Dataset dataset(sample_header());
  for (std::size_t c = 0; c < times_ns.size(); ++c) {
    add_sample(dataset, sample_problem(1), sample_config(static_cast<std::int32_t>(c)), times_ns[c],
               {.outcome = times_ns[c] < 0 ? Outcome::kCrashed : Outcome::kOk});
  }
  return dataset;
}

TEST(Picker, FirstPickCountsAndLaterOnesAreMeasured) {
  const Dataset dataset = dataset_of({400, 200, 100, 125});
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{0, 1, 3, 2};
  const ProblemScore score = score_picks(times, 0, order, 1);
  EXPECT_DOUBLE_EQ(score.efficiency, 0.25);
  EXPECT_DOUBLE_EQ(score.best_of[0], 0.25);
  EXPECT_DOUBLE_EQ(score.best_of[1], 0.5);
  EXPECT_DOUBLE_EQ(score.best_of[2], 0.8);
  EXPECT_DOUBLE_EQ(score.best_of[3], 1);
  EXPECT_DOUBLE_EQ(score.best_of[kCurveLength - 1], 1);
  EXPECT_EQ(score.hits, (std::array<double, 4>{0, 0, 1, 1}));
  EXPECT_FALSE(score.failed);
}

TEST(Picker, OfSeveralTriesTheFastestIsThePick) {
  const Dataset dataset = dataset_of({400, 200, 100, 125, -1});
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{0, 4, 3, 2};
  EXPECT_DOUBLE_EQ(score_picks(times, 0, order, 3).efficiency, 0.8);
  EXPECT_EQ(score_picks(times, 0, order, 4).hits[0], 1);
  EXPECT_EQ(score_picks(times, 0, order, 3).hits[0], 0);
}

TEST(Picker, WhatCrashesOrWasNotMeasuredCountsZero) {
  const Dataset dataset = dataset_of({100, -1});
  const MeasuredTimes times(dataset);
  for (const std::vector<std::uint32_t>& order :
       {std::vector<std::uint32_t>{1, 0}, std::vector<std::uint32_t>{99, 0},
        std::vector<std::uint32_t>{}}) {
    const ProblemScore score = score_picks(times, 0, order, 1);
    EXPECT_EQ(score.efficiency, 0);
    EXPECT_TRUE(score.failed);
    EXPECT_EQ(score.hits[0], 0);
    EXPECT_EQ(score.hits[1], order.empty() ? 0 : 1);
  }
}

TEST(Picker, AMeasuredTimeIsKeptRatherThanABound) {
  Dataset dataset = dataset_of({100, 200});
  add_sample(dataset, sample_problem(1), sample_config(2), 125, {.outcome = Outcome::kCensored});
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{2, 1};
  const ProblemScore first = score_picks(times, 0, order, 1);
  EXPECT_DOUBLE_EQ(first.efficiency, 0.8);
  EXPECT_TRUE(first.is_bound);
  EXPECT_EQ(first.hits[0], 0);
  const ProblemScore both = score_picks(times, 0, order, 2);
  EXPECT_DOUBLE_EQ(both.efficiency, 0.5);
  EXPECT_FALSE(both.is_bound);
}

TEST(Picker, OneMeasurementChoosesAndAnotherJudges) {
  // Config 1 was lucky once; what all three take again is another matter.
  Dataset dataset = dataset_of({100, 80, 120});
  const std::vector<double> again_ns{100, 125, 110};
  for (std::size_t c = 0; c < again_ns.size(); ++c) {
    add_sample(dataset, sample_problem(1), sample_config(static_cast<std::int32_t>(c)), again_ns[c],
               {.flags = kFlagReference});
  }
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{2, 0, 1};
  const ProblemScore score = score_picks(times, 0, order, 1);
  EXPECT_DOUBLE_EQ(score.best_of[0], 100.0 / 110);
  EXPECT_DOUBLE_EQ(score.best_of[1], 1);
  EXPECT_DOUBLE_EQ(score.best_of[2], 0.8) << "the fastest of the second measurement was chosen";
  EXPECT_FALSE(score.top5_judges_itself);
  EXPECT_EQ(summarise("k", "n", 1, std::vector<ProblemScore>{score}, {}).top5_judges_itself, 0U);

  const Dataset once = dataset_of({100, 80, 120});
  const ProblemScore flattered = score_picks(MeasuredTimes(once), 0, order, 1);
  EXPECT_TRUE(flattered.top5_judges_itself);
  EXPECT_EQ(summarise("k", "n", 1, std::vector<ProblemScore>{flattered}, {}).top5_judges_itself,
            1U);
  EXPECT_FALSE(
      score_picks(MeasuredTimes(once), 0, std::vector<std::uint32_t>{1}, 1).top5_judges_itself)
      << "nothing was chosen";
}

TEST(Picker, TiesAreHits) {
  const Dataset dataset = dataset_of({1000, 1005, 1500});
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{1, 2, 0};
  const ProblemScore score = score_picks(times, 0, order, 1);
  EXPECT_EQ(score.hits[0], 1);
  EXPECT_LT(score.efficiency, 1);
}

TEST(Picker, OneConfigIsAlwaysRight) {
  const Dataset dataset = dataset_of({123});
  const MeasuredTimes times(dataset);
  const std::vector<std::uint32_t> order{0};
  for (const ProblemScore& score : {score_picks(times, 0, order, 1), score_random(times, 0)}) {
    EXPECT_DOUBLE_EQ(score.efficiency, 1);
    EXPECT_DOUBLE_EQ(score.best_of[4], 1);
    EXPECT_DOUBLE_EQ(score.hits[0], 1);
  }
}

// All subsets of a size, one by one.
TEST(Picker, RandomIsTheExpectationOverAllSubsets) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const auto count = static_cast<std::size_t>(rng.between(1, 9));
    std::vector<double> times_ns{100};
    while (times_ns.size() < count) {
      times_ns.push_back(rng.below(4) == 0   ? -1
                         : rng.below(4) == 0 ? 100.5
                                             : 100 * std::exp(rng.uniform()));
    }
    const Dataset dataset = dataset_of(times_ns);
    const MeasuredTimes times(dataset);
    const ProblemScore score = score_random(times, 0);
    for (std::size_t draws = 1; draws <= 10; ++draws) {
      double sum = 0;
      double hits = 0;
      double subsets = 0;
      for (std::uint32_t set = 1; set < (1U << count); ++set) {
        if (static_cast<std::size_t>(std::popcount(set)) != std::min(draws, count)) {
          continue;
        }
        double best = 0;
        bool hit = false;
        for (std::uint32_t c = 0; c < count; ++c) {
          if ((set >> c & 1U) != 0) {
            const Comparison comparison = times.compare(0, *times.find(0, c));
            best = std::max(best, comparison.efficiency);
            hit = hit || comparison.is_tie;
          }
        }
        sum += best;
        hits += hit ? 1 : 0;
        subsets += 1;
      }
      EXPECT_NEAR(score.best_of[draws - 1], sum / subsets, 1e-12) << draws;
      for (std::size_t h = 0; h < kHitDepths.size(); ++h) {
        if (kHitDepths[h] == draws) {
          EXPECT_NEAR(score.hits[h], hits / subsets, 1e-12) << draws;
        }
      }
    }
  }
}

TEST(Picker, RandomNeverDrawsWhatIsRefused) {
  Dataset dataset = dataset_of({100, 200});
  add_sample(dataset, sample_problem(1), sample_config(2), 0, {.outcome = Outcome::kUnsupported});
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(score_random(times, 0).efficiency, 0.75);
}

TEST(Picker, ATimeFromElsewhereMayBeatAllConfigs) {
  const Dataset dataset = dataset_of({100, 200});
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(score_time(times, 0, 80).efficiency, 1.25);
  EXPECT_EQ(score_time(times, 0, 80).hits[0], 1);
  EXPECT_EQ(score_time(times, 0, 125).hits[0], 0);
  EXPECT_TRUE(std::isnan(score_time(times, 0, 80).best_of[4]));
}

TEST(Summary, EqualsPlainFormulas) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    std::vector<double> values(static_cast<std::size_t>(rng.between(1, 60)));
    for (double& value : values) {
      value = rng.uniform() + 0.01;
    }
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const SummaryIntervals summary = summary_intervals(values, 300, seed);
    EXPECT_NEAR(summary.mean.value, mean(values), 1e-12);
    EXPECT_NEAR(summary.median.value, median(values), 1e-12);
    EXPECT_NEAR(summary.p10.value, quantile(values, 0.1), 1e-12);
    EXPECT_EQ(summary.minimum.value, sorted[0]);
    EXPECT_NEAR(summary.geomean.value, geometric_mean(values), 1e-12);
    // The same draws through the plain bootstrap.
    const auto check = [&](const Interval& interval, double (*statistic)(std::span<const double>)) {
      Rng same(seed);
      const BootstrapInterval plain = bootstrap_interval(sorted, statistic, 300, same);
      EXPECT_NEAR(interval.low, plain.low, 1e-12);
      EXPECT_NEAR(interval.high, plain.high, 1e-12);
    };
    check(summary.mean, &mean);
    check(summary.median, &median);
    check(summary.p10, [](std::span<const double> all) { return quantile(all, 0.1); });
    check(summary.minimum,
          [](std::span<const double> all) { return *std::min_element(all.begin(), all.end()); });
    check(summary.geomean, &geometric_mean);
  }
}

TEST(Summary, ZeroMakesTheGeometricMeanZero) {
  const std::vector<double> values{0, 1, 1, 1};
  const SummaryIntervals summary = summary_intervals(values, 200, 1);
  EXPECT_EQ(summary.geomean.value, 0);
  EXPECT_EQ(summary.geomean.low, 0);
  EXPECT_DOUBLE_EQ(summary.mean.value, 0.75);
}

TEST(Summary, WithoutResamplingIntervalsAreTheValue) {
  const std::vector<double> values{0.5, 1};
  const SummaryIntervals summary = summary_intervals(values, 0, 1);
  EXPECT_EQ(summary.mean.low, 0.75);
  EXPECT_EQ(summary.mean.high, 0.75);
}

TEST(Summary, IntervalsCoverTheTruthAboutAsOftenAsTheySay) {
  // Uniform values: mean 0.5. The percentile bootstrap of 40 values covers a little less than 95 %.
  constexpr int kTrials = 400;
  int covered = 0;
  int covered_median = 0;
  Rng rng(5);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(40);
    for (double& value : values) {
      value = rng.uniform();
    }
    const SummaryIntervals summary = summary_intervals(values, 400, rng.next());
    covered += summary.mean.low <= 0.5 && 0.5 <= summary.mean.high ? 1 : 0;
    covered_median += summary.median.low <= 0.5 && 0.5 <= summary.median.high ? 1 : 0;
    EXPECT_LE(summary.p10.low, summary.p10.high);
    EXPECT_EQ(summary.minimum.low, summary.minimum.value);
  }
  EXPECT_NEAR(covered, 0.94 * kTrials, 0.04 * kTrials);
  EXPECT_NEAR(covered_median, 0.94 * kTrials, 0.05 * kTrials);
}

TEST(Summary, CountsWhatHappenedToPicks) {
  std::vector<ProblemScore> scores(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    scores[i].problem = i;
    scores[i].efficiency = i == 0 ? 0 : 1;
    scores[i].best_of.fill(1);
    scores[i].failed = i == 0;
    scores[i].is_bound = i == 1;
    scores[i].replaced = i > 1;
    scores[i].hits = {0.5, 0.5, 1, 1};
  }
  const PickerResult result = summarise("key", "name", 1, scores, {100, 1});
  EXPECT_EQ(result.problems, 4U);
  EXPECT_EQ(result.failed, 1U);
  EXPECT_EQ(result.bounds, 1U);
  EXPECT_EQ(result.replaced, 2U);
  EXPECT_DOUBLE_EQ(result.mean_efficiency.value, 0.75);
  EXPECT_DOUBLE_EQ(result.top1_hit, 0.5);
  EXPECT_DOUBLE_EQ(result.top5_hit, 1);
  EXPECT_DOUBLE_EQ(result.top5_measured_efficiency.value, 1);
  EXPECT_EQ(result.measured_curve.size(), kCurveLength);
}

TEST(Summary, GainIsOverTheProblemsThatBothHave) {
  PickerResult model;
  model.problem_ids = {1, 2, 4, 7};
  model.efficiency = {1, 0.9, 0, 0.8};
  PickerResult other;
  other.problem_ids = {0, 2, 4, 7};
  other.efficiency = {0.1, 0.6, 0.5, 0.4};
  compare_with_model(model, {200, 3}, other);
  EXPECT_NEAR(other.model_gain.value, (0.3 - 0.5 + 0.4) / 3, 1e-12);
  EXPECT_LE(other.model_gain.low, other.model_gain.value);
  EXPECT_GE(other.model_gain.high, other.model_gain.value);
  EXPECT_NEAR(other.model_speedup, std::sqrt(1.5 * 2), 1e-12) << "failures have no ratio";
  other.problem_ids = {0, 3, 5, 8};
  compare_with_model(model, {200, 3}, other);
  EXPECT_TRUE(std::isnan(other.model_gain.value));
  EXPECT_TRUE(std::isnan(other.model_speedup));
}

}  // namespace
}  // namespace foretune::evaluate_internal
