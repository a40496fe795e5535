#include "foretune/evaluate/measured_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/evaluate/testing/evaluation_samples.h"

namespace foretune {
namespace {

constexpr SampleRow kAgain{.flags = kFlagReference};

// A time of a config of sample_problem(1).
struct Time {
  std::int32_t config = 0;
  double ns = 0;
  SampleRow row{};
};

Dataset measured(const std::vector<Time>& times) {
  Dataset dataset(sample_header());
  for (const Time& time : times) {
    add_sample(dataset, sample_problem(1), sample_config(time.config), time.ns, time.row);
  }
  return dataset;
}

// A disturbed time may be too slow, so nothing is measured by it.
TEST(MeasuredTimes, DisturbedTimesAreNeverTheBestAndCountWhereThereIsNoOther) {
  const SampleRow disturbed{.flags = kFlagLoaded};
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 100, {});
  add_sample(dataset, sample_problem(1), sample_config(1), 80, disturbed);
  add_sample(dataset, sample_problem(1), sample_config(2), 300, disturbed);
  add_sample(dataset, sample_problem(1), sample_config(2), 200, {});
  add_sample(dataset, sample_problem(1), sample_config(3), 400, disturbed);
  add_sample(dataset, sample_problem(2), sample_config(0), 100, disturbed);
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 100);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 1)).efficiency, 1);
  EXPECT_DOUBLE_EQ(times.find(0, 2)->time_ns, 200);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 3)).efficiency, 0.25);
  EXPECT_FALSE(times.has_oracle(1));
}

TEST(MeasuredTimes, ADisturbedComparisonIsNoBestEither) {
  const auto reference = [](std::uint8_t flags) {
    return SampleRow{.flags = static_cast<std::uint8_t>(kFlagReference | flags)};
  };
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 100, {});
  add_sample(dataset, sample_problem(1), sample_config(1), 110, {});
  add_sample(dataset, sample_problem(1), sample_config(0), 104, reference(0));
  add_sample(dataset, sample_problem(1), sample_config(1), 96, reference(kFlagLoaded));
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 104);
}

TEST(MeasuredTimes, ComparesByOrdinaryTimesWhereThereAreNoOthers) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 200);
  add_sample(dataset, sample_problem(1), sample_config(1), 100);
  const MeasuredTimes times(dataset);
  const Comparison pick = times.compare(0, *times.find(0, 0));
  EXPECT_DOUBLE_EQ(pick.efficiency, 0.5);
  EXPECT_DOUBLE_EQ(pick.pick_ns, 200);
  EXPECT_DOUBLE_EQ(pick.best_ns, 100);
  EXPECT_EQ(pick.best_config, 1U);
  EXPECT_FALSE(pick.is_tie);
  EXPECT_TRUE(times.compare(0, *times.find(0, 1)).is_tie);
  EXPECT_EQ(times.find(0, 7), nullptr);
  EXPECT_FALSE(times.has_reference(0));
}

TEST(MeasuredTimes, ComparesByReferenceTimesOnlyWhenPickAndBestHaveThem) {
  const Dataset dataset = measured({{0, 100},  // the luckiest
                                    {1, 105},
                                    {2, 120},
                                    {0, 110, kAgain},
                                    {1, 104, kAgain}});
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 104);
  EXPECT_EQ(times.oracle_config(0), 1U);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 1)).efficiency, 1);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 0)).efficiency, 104.0 / 110);
  // Never measured again: only the first session compares it with anything.
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 2)).efficiency, 100.0 / 120);
  EXPECT_EQ(times.compare(0, *times.find(0, 2)).best_config, 0U);
}

TEST(MeasuredTimes, RelatesComparisonsOfDifferentHoursByWhatTheyShare) {
  const Dataset dataset =
      measured({{0, 100},
                {1, 105},
                {0, 100, kAgain},
                {1, 110, kAgain},
                // The machine became half as fast, and the new config is the fastest.
                {2, 190},
                {0, 200, kAgain},
                {2, 180, kAgain}});
  const MeasuredTimes times(dataset);
  EXPECT_EQ(times.oracle_config(0), 2U);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 90);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 0)).efficiency, 0.9);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 1)).efficiency, 90.0 / 110);
}

TEST(MeasuredTimes, ConfigsTimedAgainAtOnceBeginAnotherComparison) {
  Dataset dataset(sample_header());
  const Problem problem = sample_problem(1);
  const SampleRow reference{.flags = kFlagReference};
  add_sample(dataset, problem, sample_config(0), 100);
  for (const double speed : {1.0, 0.5, 0.8}) {
    add_sample(dataset, problem, sample_config(0), 100 / speed, reference);
    add_sample(dataset, problem, sample_config(1), 120 / speed, reference);
  }
  const MeasuredTimes times(dataset);
  EXPECT_NEAR(times.find(0, 0)->reference_ns, 100, 1e-4);
  EXPECT_NEAR(times.find(0, 1)->reference_ns, 120, 1e-4);
}

TEST(MeasuredTimes, AConfigThatFailsDoesNotCutAComparison) {
  Dataset dataset(sample_header());
  const Problem problem = sample_problem(1);
  const SampleRow reference{.flags = kFlagReference};
  const SampleRow crashed{.outcome = Outcome::kCrashed, .flags = kFlagReference};
  add_sample(dataset, problem, sample_config(0), 100);
  add_sample(dataset, problem, sample_config(0), 100, reference);
  add_sample(dataset, problem, sample_config(1), 110, reference);
  add_sample(dataset, problem, sample_config(0), 200, reference);
  add_sample(dataset, problem, sample_config(2), 0, crashed);
  add_sample(dataset, problem, sample_config(3), 180, reference);
  const MeasuredTimes times(dataset);
  EXPECT_EQ(times.oracle_config(0), 3U);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 90);
}

TEST(MeasuredTimes, IgnoresReferenceTimesThatDoNotIncludeTheBest) {
  const Dataset dataset = measured({{0, 100}, {1, 150}, {1, 150, kAgain}});
  const MeasuredTimes times(dataset);
  EXPECT_FALSE(times.has_reference(0));
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 100);
  EXPECT_DOUBLE_EQ(times.compare(0, *times.find(0, 1)).efficiency, 100.0 / 150);
}

TEST(MeasuredTimes, TiesWithinOnePercentOrTheLargerStoredSpread) {
  Dataset dataset(sample_header());
  const Problem problem = sample_problem(1);
  // Spreads are stored in 16 bits; 1/32 is exact.
  add_sample(dataset, problem, sample_config(0), 1000);
  add_sample(dataset, problem, sample_config(1), 1009);
  add_sample(dataset, problem, sample_config(2), 1011);
  add_sample(dataset, problem, sample_config(3), 1031, {.spread = 0.03125});
  add_sample(dataset, problem, sample_config(4), 1033, {.spread = 0.03125});
  const MeasuredTimes times(dataset);
  const std::vector<bool> expected{true, true, false, true, false};
  for (std::uint32_t c = 0; c < expected.size(); ++c) {
    EXPECT_EQ(times.compare(0, *times.find(0, c)).is_tie, expected[c]) << c;
  }
}

TEST(MeasuredTimes, FailuresCountZeroAndBoundsAreUpperBounds) {
  Dataset dataset(sample_header());
  const Problem problem = sample_problem(1);
  add_sample(dataset, problem, sample_config(0), 100);
  add_sample(dataset, problem, sample_config(1), 0, {.outcome = Outcome::kCrashed});
  add_sample(dataset, problem, sample_config(2), 250, {.outcome = Outcome::kCensored});
  add_sample(dataset, problem, sample_config(3), 80, {.outcome = Outcome::kCensored});
  add_sample(dataset, problem, sample_config(4), 0, {.outcome = Outcome::kUnsupported});
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 100) << "a bound is no time";
  const Comparison crashed = times.compare(0, *times.find(0, 1));
  EXPECT_EQ(crashed.efficiency, 0);
  EXPECT_LT(crashed.pick_ns, 0);
  EXPECT_FALSE(crashed.is_tie);
  const Comparison bound = times.compare(0, *times.find(0, 2));
  EXPECT_DOUBLE_EQ(bound.efficiency, 0.4);
  EXPECT_TRUE(bound.is_bound);
  const Comparison low_bound = times.compare(0, *times.find(0, 3));
  EXPECT_DOUBLE_EQ(low_bound.efficiency, 1) << "capped";
  EXPECT_FALSE(low_bound.is_tie) << "nobody knows";
  EXPECT_EQ(times.find(0, 4)->state, MeasuredState::kRefused);
}

TEST(MeasuredTimes, MergesRowsOfOneConfig) {
  Dataset dataset(sample_header());
  const Problem problem = sample_problem(1);
  add_sample(dataset, problem, sample_config(0), 0, {.outcome = Outcome::kCrashed});
  add_sample(dataset, problem, sample_config(0), 90, {.outcome = Outcome::kCensored});
  add_sample(dataset, problem, sample_config(0), 300, {.threads = 2});
  add_sample(dataset, problem, sample_config(0), 100);
  add_sample(dataset, problem, sample_config(0), 104);
  add_sample(dataset, problem, sample_config(1), 50, {.outcome = Outcome::kCensored});
  add_sample(dataset, problem, sample_config(1), 70, {.outcome = Outcome::kCensored});
  const MeasuredTimes times(dataset);
  EXPECT_EQ(times.find(0, 0)->state, MeasuredState::kOk);
  EXPECT_DOUBLE_EQ(times.find(0, 0)->time_ns, 104) << "the median";
  EXPECT_DOUBLE_EQ(times.find(0, 1)->time_ns, 70) << "the highest bound says most";
}

TEST(MeasuredTimes, TimesThatCannotBeAreNobodysOracle) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 100);
  Dataset::Row row = dataset.rows()[0];
  row.config = dataset.intern_config(sample_config(1));
  for (const float bad : {0.0F, -5.0F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    row.time_ns = bad;
    dataset.add_row(row);
  }
  const MeasuredTimes times(dataset);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 100);
  EXPECT_EQ(times.find(0, 1)->state, MeasuredState::kFailed);
}

TEST(MeasuredTimes, ConfigsOfAnotherSchemaAreNoCandidates) {
  Dataset dataset(sample_header());
  Config vendor = sample_config(0);
  vendor.schema = 1;
  add_sample(dataset, sample_problem(1), vendor, 10);
  add_sample(dataset, sample_problem(1), sample_config(0), 100);
  const MeasuredTimes times(dataset);
  EXPECT_EQ(times.candidates(0).size(), 1U);
  EXPECT_DOUBLE_EQ(times.oracle_ns(0), 100);
}

TEST(MeasuredTimes, ProblemsWithoutATimeHaveNoOracle) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(1), sample_config(0), 0, {.outcome = Outcome::kCrashed});
  add_sample(dataset, sample_problem(2), sample_config(0), 10, {.outcome = Outcome::kCensored});
  (void)dataset.intern_problem(sample_problem(3));
  const std::vector<double> oracles = oracle_times_ns(dataset);
  ASSERT_EQ(oracles.size(), 3U);
  EXPECT_TRUE(std::all_of(oracles.begin(), oracles.end(), [](double ns) { return ns < 0; }));
  EXPECT_TRUE(oracle_times_ns(Dataset(sample_header())).empty());
}

// The rule, written down again over plain rows.
double naive_efficiency(const Dataset& dataset, std::uint32_t problem, std::uint32_t config) {
  std::map<std::uint32_t, std::vector<double>> ordinary;
  std::map<std::uint32_t, std::vector<double>> reference;
  std::map<std::uint32_t, double> bounds;
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.problem != problem) {
      continue;
    }
    const auto time_ns = static_cast<double>(row.time_ns);
    if (row.outcome == Outcome::kOk) {
      ((row.flags & kFlagReference) != 0 ? reference : ordinary)[row.config].push_back(time_ns);
    } else if (row.outcome == Outcome::kCensored) {
      bounds[row.config] = std::max(bounds[row.config], time_ns);
    }
  }
  double best_ns = 1e300;
  std::uint32_t best = 0;
  for (const auto& [id, times_ns] : ordinary) {
    if (median(times_ns) < best_ns) {
      best_ns = median(times_ns);
      best = id;
    }
  }
  if (reference.contains(best) && reference.contains(config)) {
    double best_reference_ns = 1e300;
    for (const auto& [id, times_ns] : reference) {
      best_reference_ns = std::min(best_reference_ns, median(times_ns));
    }
    return best_reference_ns / median(reference[config]);
  }
  if (ordinary.contains(config)) {
    return best_ns / median(ordinary[config]);
  }
  return bounds.contains(config) ? std::min(1.0, best_ns / bounds[config]) : 0;
}

TEST(MeasuredTimes, AgreesWithTheRuleOverPlainRows) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    Dataset dataset = random_dataset(10, 12, true, rng);
    // Rows in any order give the same.
    std::vector<Dataset::Row> rows(dataset.rows().begin(), dataset.rows().end());
    rng.shuffle(std::span(rows));
    dataset.drop_rows();
    for (const Dataset::Row& row : rows) {
      dataset.add_row(row);
    }
    const MeasuredTimes times(dataset);
    for (std::uint32_t p = 0; p < dataset.problems().size(); ++p) {
      for (const MeasuredCandidate& candidate : times.candidates(p)) {
        const double efficiency = times.compare(p, candidate).efficiency;
        EXPECT_NEAR(efficiency, naive_efficiency(dataset, p, candidate.config), 1e-12);
        EXPECT_LE(efficiency, 1);
      }
    }
  }
}

}  // namespace
}  // namespace foretune
