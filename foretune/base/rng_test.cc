// The golden values were computed by a separate program in another language: every data set and
// model that was made with a seed depends on them.
#include "foretune/base/rng.h"

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

std::vector<std::uint64_t> first(Rng rng, int count) {
  std::vector<std::uint64_t> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(rng.next());
  }
  return out;
}

TEST(Rng, GoldenValues) {
  EXPECT_THAT(first(Rng(0), 4), ElementsAre(0x99ec5f36cb75f2b4U, 0xbf6e1f784956452aU,
                                            0x1a5f849d4933e6e0U, 0x6aa594f1262d2d2cU));
  EXPECT_THAT(first(Rng(42), 4), ElementsAre(0x15780b2e0c2ec716U, 0x6104d9866d113a7eU,
                                             0xae17533239e499a1U, 0xecb8ad4703b360a1U));
}

TEST(Rng, DistributionsAreGoldenToo) {
  Rng below(42);
  std::vector<std::uint64_t> digits;
  for (int i = 0; i < 12; ++i) {
    digits.push_back(below.below(10));
  }
  EXPECT_THAT(digits, ElementsAre(0, 3, 6, 9, 9, 7, 7, 8, 7, 5, 6, 2));
  Rng uniform(42);
  EXPECT_EQ(uniform.uniform(), 0.08386297105988216);
  EXPECT_EQ(uniform.uniform(), 0.3789802506626686);
  Rng normal(42);
  EXPECT_DOUBLE_EQ(normal.normal(), -0.7262191382447857);
  EXPECT_DOUBLE_EQ(normal.normal(), 0.2216227015035933);
  EXPECT_DOUBLE_EQ(normal.normal(), 0.46417731016247366);
}

TEST(Rng, SplitDependsOnTheNameAndLeavesTheParentAlone) {
  Rng parent(42);
  EXPECT_EQ(parent.split(7).next(), 0x573ba1cfd8792333U);
  EXPECT_NE(parent.split(7).next(), parent.split(8).next());
  EXPECT_EQ(parent.split(7).next(), 0x573ba1cfd8792333U);
  EXPECT_EQ(parent.next(), 0x15780b2e0c2ec716U);
}

TEST(Rng, BelowIsUniform) {
  constexpr std::uint64_t kSeed = 17;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (const std::uint64_t bound :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, std::uint64_t{100}}) {
    constexpr int kDraws = 100000;
    std::vector<double> counts(bound);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t drawn = rng.below(bound);
      ASSERT_LT(drawn, bound);
      counts[drawn] += 1;
    }
    const double expected = kDraws / static_cast<double>(bound);
    double chi_squared = 0;
    for (const double count : counts) {
      chi_squared += (count - expected) * (count - expected) / expected;
    }
    // Mean bound - 1, variance 2 (bound - 1): six standard deviations.
    const double freedom = static_cast<double>(bound) - 1;
    EXPECT_LE(chi_squared, freedom + 6 * std::sqrt(2 * freedom) + 1e-9) << bound;
  }
}

TEST(Rng, BelowHasNoBiasForHugeBounds) {
  // Plain multiplication would favour even thirds; two thirds of 2^64 shows it at once.
  constexpr std::uint64_t kBound = 0xaaaaaaaaaaaaaaabU;
  Rng rng(23);
  int low_half = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t drawn = rng.below(kBound);
    ASSERT_LT(drawn, kBound);
    low_half += drawn < kBound / 2 ? 1 : 0;
  }
  EXPECT_NEAR(low_half, kDraws / 2.0, 6 * std::sqrt(kDraws / 4.0));
}

TEST(Rng, BetweenIncludesBothEnds) {
  Rng rng(29);
  std::vector<int> counts(5);
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t drawn = rng.between(-2, 2);
    ASSERT_GE(drawn, -2);
    ASSERT_LE(drawn, 2);
    ++counts[static_cast<std::size_t>(drawn + 2)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 200);
  }
  EXPECT_EQ(rng.between(7, 7), 7);
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  int negative = 0;
  for (int i = 0; i < 1000; ++i) {
    negative += rng.between(kLow, kHigh) < 0 ? 1 : 0;
  }
  EXPECT_NEAR(negative, 500, 100);
}

TEST(Rng, UniformAndNormalHaveTheirMoments) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  constexpr int kDraws = 200000;
  double uniform_sum = 0;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform_sum += u;
    const double n = rng.normal();
    sum += n;
    squares += n * n;
    fourth += n * n * n * n;
  }
  EXPECT_NEAR(uniform_sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourth / kDraws, 3, 0.2);
}

TEST(Rng, ShuffleReachesEveryOrderEquallyOften) {
  Rng rng(37);
  std::vector<int> counts(24);
  constexpr int kTrials = 24000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<int> values{0, 1, 2, 3};
    rng.shuffle(std::span(values));
    std::vector<int> order{0, 1, 2, 3};
    std::size_t rank = 0;
    while (order != values) {
      ASSERT_TRUE(std::next_permutation(order.begin(), order.end()));
      ++rank;
    }
    ++counts[rank];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 200);
  }
}

}  // namespace
}  // namespace foretune
