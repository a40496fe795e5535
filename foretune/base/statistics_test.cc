#include "foretune/base/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> random_values(Rng& rng, std::size_t count, bool with_ties) {
  std::vector<double> values(count);
  for (double& value : values) {
    value = with_ties ? static_cast<double>(rng.below(5)) : rng.normal();
  }
  return values;
}

TEST(AllFinite, NeitherInfiniteValuesNorNansAre) {
  EXPECT_TRUE(all_finite(std::vector<float>{}));
  EXPECT_TRUE(all_finite(std::vector<float>{0, -std::numeric_limits<float>::max()}));
  EXPECT_TRUE(all_finite(std::vector<double>{std::numeric_limits<double>::denorm_min(), 1e300}));
  for (const double bad : {kInfinity, -kInfinity, kNan}) {
    EXPECT_FALSE(all_finite(std::vector<double>{1, bad, 2}));
    EXPECT_FALSE(all_finite(std::vector<float>{1, 2, static_cast<float>(bad)}));
  }
}

TEST(Quantile, KnownValues) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 4);
  EXPECT_EQ(quantile(values, 0.5), 2.5);
  // R: quantile(1:4, c(0.1, 0.25)), type 7.
  EXPECT_DOUBLE_EQ(quantile(values, 0.1), 1.3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_EQ(quantile(values, -1), 1);
  EXPECT_EQ(quantile(values, 2), 4);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  Rng rng(7);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> values = random_values(rng, 1 + rng.below(20), trial % 2 == 0);
    const double q = rng.uniform();
    const double result = quantile(values, q);
    std::sort(values.begin(), values.end());
    // Linear in q between the points (i / (n - 1), values[i]).
    const double steps = static_cast<double>(values.size() - 1);
    double expected = values.back();
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double left = static_cast<double>(i) / steps;
      const double right = static_cast<double>(i + 1) / steps;
      if (q >= left && q < right) {
        expected = values[i] + (q - left) / (right - left) * (values[i + 1] - values[i]);
      }
    }
    ASSERT_NEAR(result, expected, 1e-12);
  }
}

TEST(Quantile, InfiniteValuesAreValues) {
  EXPECT_EQ(median(std::vector<double>{1, 2, kInfinity}), 2);
  EXPECT_EQ(median(std::vector<double>{1, kInfinity, kInfinity}), kInfinity);
  EXPECT_EQ(quantile(std::vector<double>{1, kInfinity}, 0.0), 1);
  EXPECT_EQ(quantile(std::vector<double>{1, kInfinity}, 0.5), kInfinity);
  EXPECT_EQ(median(std::vector<double>{-kInfinity, 0, kInfinity}), 0);
}

TEST(Statistics, NanInNanOut) {
  const std::vector<double> values{1, kNan, 2};
  EXPECT_TRUE(std::isnan(quantile(values, 0.5)));
  EXPECT_TRUE(std::isnan(mean(values)));
  EXPECT_TRUE(std::isnan(geometric_mean(values)));
  EXPECT_TRUE(std::isnan(relative_spread(values)));
  EXPECT_TRUE(std::isnan(spearman(values, std::vector<double>{1, 2, 3})));
  EXPECT_TRUE(std::isnan(quantile(std::vector<double>{1, 2}, kNan)));
  EXPECT_THAT(ranks(values), ElementsAre(1, 3, 2));
  EXPECT_THAT(ranks(std::vector<double>{kNan, 5, kNan}), ElementsAre(2.5, 1, 2.5));
  Rng rng(1);
  EXPECT_TRUE(std::isnan(bootstrap_interval(values, median, 10, rng).low));
}

TEST(Mean, ArithmeticAndGeometric) {
  EXPECT_EQ(mean(std::vector<double>{1, 2, 6}), 3);
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_NEAR(geometric_mean(std::vector<double>{1, 10, 100}), 10, 1e-12);
  EXPECT_TRUE(std::isnan(geometric_mean({})));
}

TEST(RelativeSpread, IsTheInterquartileRangeOverTheMedian) {
  EXPECT_EQ(relative_spread(std::vector<double>{5}), 0);
  EXPECT_EQ(relative_spread({}), 0);
  EXPECT_EQ(relative_spread(std::vector<double>{3, 3, 3}), 0);
  EXPECT_DOUBLE_EQ(relative_spread(std::vector<double>{8, 9, 10, 11, 12}), 0.2);
  EXPECT_EQ(relative_spread(std::vector<double>{0, 0, 0, 1}), 0);
}

TEST(Ranks, TiesShareTheirMean) {
  EXPECT_THAT(ranks({}), IsEmpty());
  EXPECT_THAT(ranks(std::vector<double>{30, 10, 20}), ElementsAre(3, 1, 2));
  EXPECT_THAT(ranks(std::vector<double>{1, 2, 2, 3}), ElementsAre(1, 2.5, 2.5, 4));
  EXPECT_THAT(ranks(std::vector<double>{5, 5, 5}), ElementsAre(2, 2, 2));
}

TEST(Ranks, EqualTheNaiveCount) {
  Rng rng(9);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<double> values = random_values(rng, rng.below(30), trial % 2 == 0);
    const std::vector<double> result = ranks(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double below = 0;
      double equal = 0;
      for (const double other : values) {
        below += other < values[i] ? 1 : 0;
        equal += other == values[i] ? 1 : 0;
      }
      ASSERT_EQ(result[i], below + (equal + 1) / 2);
    }
  }
}

double pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a);
  const double mean_b = mean(b);
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

TEST(Spearman, IsPearsonOfTheRanks) {
  Rng rng(13);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t count = 3 + rng.below(30);
    const std::vector<double> a = random_values(rng, count, trial % 2 == 0);
    const std::vector<double> b = random_values(rng, count, trial % 3 == 0);
    const double expected = pearson(ranks(a), ranks(b));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(spearman(a, b)));
    } else {
      ASSERT_NEAR(spearman(a, b), expected, 1e-12);
    }
  }
}

TEST(Spearman, CornerCases) {
  const std::vector<double> up{1, 2, 3, 4};
  const std::vector<double> down{40, 30, 20, 10};
  EXPECT_EQ(spearman(up, up), 1);
  EXPECT_EQ(spearman(up, down), -1);
  EXPECT_TRUE(std::isnan(spearman(up, std::vector<double>(4, 1.0))));
  EXPECT_TRUE(std::isnan(spearman(up, std::vector<double>{1})));
  EXPECT_TRUE(std::isnan(spearman({}, {})));
}

TEST(Bootstrap, SameSeedSameInterval) {
  const std::vector<double> values{1, 5, 2, 8, 3};
  Rng a(1);
  Rng b(1);
  const BootstrapInterval first = bootstrap_interval(values, mean, 200, a);
  const BootstrapInterval second = bootstrap_interval(values, mean, 200, b);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
  EXPECT_LT(first.low, first.high);
}

TEST(Bootstrap, CoversTheTrueMeanAboutAsOftenAsItClaims) {
  constexpr std::uint64_t kSeed = 19;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  int covered = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> values = random_values(rng, 60, false);
    const BootstrapInterval interval = bootstrap_interval(values, mean, 400, rng);
    covered += interval.low <= 0 && 0 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(covered, kTrials * 0.89);
  EXPECT_LT(covered, kTrials * 0.99);
}

TEST(Bootstrap, HasTheWidthOfTheNormalApproximation) {
  Rng rng(21);
  const std::vector<double> values = random_values(rng, 400, false);
  const BootstrapInterval interval = bootstrap_interval(values, mean, 4000, rng);
  double variance = 0;
  for (const double value : values) {
    variance += (value - mean(values)) * (value - mean(values)) / 400;
  }
  const double half_width = 1.96 * std::sqrt(variance / 400);
  EXPECT_NEAR(interval.high - interval.low, 2 * half_width, 0.2 * half_width);
  EXPECT_NEAR((interval.high + interval.low) / 2, mean(values), 0.2 * half_width);
}

TEST(Bootstrap, NothingToResampleIsNotANumber) {
  Rng rng(1);
  EXPECT_TRUE(std::isnan(bootstrap_interval({}, mean, 10, rng).low));
  EXPECT_TRUE(std::isnan(bootstrap_interval(std::vector<double>{1}, mean, 0, rng).high));
  const BootstrapInterval one = bootstrap_interval(std::vector<double>{3}, mean, 10, rng);
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.high, 3);
}

TEST(PairedBootstrap, AConstantDifferenceIsKnownExactly) {
  Rng rng(3);
  const std::vector<double> before = random_values(rng, 40, false);
  std::vector<double> after = before;
  for (double& value : after) {
    value += 0.25;
  }
  const BootstrapInterval interval = paired_bootstrap_interval(before, after, &mean, 200, rng);
  EXPECT_NEAR(interval.low, 0.25, 1e-12);
  EXPECT_NEAR(interval.high, 0.25, 1e-12);
  // Without pairing, the same differences are not distinguishable from none.
  std::vector<double> shuffled = after;
  rng.shuffle(std::span(shuffled));
  const BootstrapInterval wide = paired_bootstrap_interval(before, shuffled, &mean, 200, rng);
  EXPECT_LT(wide.low, 0.2);
  EXPECT_GT(wide.high, 0.3);
}

TEST(PairedBootstrap, NothingHasNoInterval) {
  Rng rng(3);
  EXPECT_TRUE(std::isnan(paired_bootstrap_interval({}, {}, &mean, 10, rng).low));
}

}  // namespace
}  // namespace foretune
