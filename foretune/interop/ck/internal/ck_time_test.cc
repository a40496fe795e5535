#include "foretune/interop/ck/internal/ck_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "foretune/base/rng.h"

namespace foretune::dataset_internal {
namespace {

using ::testing::HasSubstr;

double two_decimals(double value) { return std::round(value * 100) / 100; }

TEST(CkTime, HalfWidthIsThatOfTheLastDecimalOfAtLeastTwo) {
  EXPECT_DOUBLE_EQ(rounding_half_width(0), 0.005);
  EXPECT_DOUBLE_EQ(rounding_half_width(0.04), 0.005);
  EXPECT_DOUBLE_EQ(rounding_half_width(12.5), 0.005);
  EXPECT_DOUBLE_EQ(rounding_half_width(300), 0.005);
  EXPECT_DOUBLE_EQ(rounding_half_width(0.0084), 0.00005);
  EXPECT_LT(rounding_half_width(0.026284098625183105), 1e-17);
  EXPECT_GT(rounding_half_width(std::numeric_limits<double>::max()), 0);
  EXPECT_GE(rounding_half_width(std::numeric_limits<double>::denorm_min()), 0);
}

TEST(CkTime, FastKernelsAreRestoredFromTheirThroughput) {
  // 1 x 4096 x 4096 in 3.06 us.
  const auto time = restore_time({.latency_ms = 0.0, .tflops = 10.97, .flops = 2.0 * 4096 * 4096});
  ASSERT_TRUE(time) << time.error().message;
  EXPECT_NEAR(time->time_ns, 3059, 1);
  EXPECT_NEAR(time->relative_error, 0.005 / 10.97, 1e-6);
  EXPECT_TRUE(time->from_rate);
  EXPECT_FALSE(time->figures_disagree);
}

TEST(CkTime, WhatLeavesLeastOpenIsTaken) {
  // A long run: the latency has five digits, the throughput three.
  const auto slow = restore_time({.latency_ms = 123.45, .tflops = 1.11, .flops = 1.111e9 * 123.45});
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_DOUBLE_EQ(slow->time_ns, 123.45e6);
  EXPECT_FALSE(slow->from_rate);
  // A product too small for a throughput, whose bandwidth is known.
  const auto thin =
      restore_time({.latency_ms = 0.0, .tflops = 0.0, .gb_s = 5.46, .flops = 8192, .bytes = 16386});
  ASSERT_TRUE(thin) << thin.error().message;
  EXPECT_NEAR(thin->time_ns, 16386 / 5.46, 1e-6);
}

TEST(CkTime, ABandwidthThatContradictsTheThroughputIsNotUsed) {
  const auto time = restore_time(
      {.latency_ms = 0.02, .tflops = 26.21, .gb_s = 122.88, .flops = 524288000, .bytes = 2867200});
  ASSERT_TRUE(time) << time.error().message;
  EXPECT_NEAR(time->time_ns, 524288000 / 26210.0, 1e-6);
}

TEST(CkTime, RatesAloneWillDoAndSoWillTheLatency) {
  EXPECT_DOUBLE_EQ(restore_time({.tflops = 2.0, .flops = 4e6})->time_ns, 2000);
  const auto latency = restore_time({.latency_ms = 0.04});
  ASSERT_TRUE(latency);
  EXPECT_DOUBLE_EQ(latency->time_ns, 40000);
  EXPECT_DOUBLE_EQ(latency->relative_error, 0.125);
}

TEST(CkTime, FiguresThatDisagreeLeaveTheLatencyOrNothing) {
  const auto disagree = restore_time({.latency_ms = 5.0, .tflops = 100.0, .flops = 1e9});
  ASSERT_TRUE(disagree) << disagree.error().message;
  EXPECT_TRUE(disagree->figures_disagree);
  EXPECT_DOUBLE_EQ(disagree->time_ns, 5e6);
  EXPECT_THAT(restore_time({.latency_ms = 0.0, .tflops = 1.0, .flops = 1e9}).error().message,
              HasSubstr("contradict"));
}

TEST(CkTime, NothingIsMadeUp) {
  EXPECT_THAT(restore_time({}).error().message, HasSubstr("without a time"));
  EXPECT_THAT(restore_time({.tflops = 3.0}).error().message, HasSubstr("without a time"));
  EXPECT_THAT(restore_time({.latency_ms = 0.0, .tflops = 0.0, .flops = 2}).error().message,
              HasSubstr("rounded to 0"));
  for (const double bad :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(restore_time({.latency_ms = bad}));
    EXPECT_FALSE(restore_time({.latency_ms = 1.0, .tflops = bad, .flops = 1}));
    EXPECT_FALSE(restore_time({.latency_ms = 1.0, .gb_s = bad, .bytes = 1}));
  }
}

// The true time always lies where the restored one says, and never farther away than the latency
// alone would leave it.
TEST(CkTime, TheTrueTimeIsWithinTheError) {
  constexpr std::uint64_t kSeed = 20261121;
  Rng rng(kSeed);
  int restored = 0;
  for (int i = 0; i < 20000; ++i) {
    const double time_ns = std::exp(std::log(500.0) + rng.uniform() * std::log(1e5));
    const double flops = std::exp(std::log(1e4) + rng.uniform() * std::log(1e8));
    const double bytes = std::exp(std::log(1e3) + rng.uniform() * std::log(1e6));
    const CkFigures figures{.latency_ms = two_decimals(time_ns * 1e-6),
                            .tflops = two_decimals(flops / time_ns * 1e-3),
                            .gb_s = two_decimals(bytes / time_ns),
                            .flops = flops,
                            .bytes = bytes};
    const auto time = restore_time(figures);
    if (!time) {
      EXPECT_THAT(time.error().message, HasSubstr("rounded to 0")) << "seed " << kSeed;
      continue;
    }
    ++restored;
    EXPECT_FALSE(time->figures_disagree);
    EXPECT_LE(std::abs(time->time_ns - time_ns), time->time_ns * time->relative_error * 1.6 + 1e-6)
        << "seed " << kSeed << ": " << time_ns << " ns was restored as " << time->time_ns;
    EXPECT_LE(time->time_ns * time->relative_error, 0.005e6 * 1.001);
  }
  EXPECT_GT(restored, 15000);
}

}  // namespace
}  // namespace foretune::dataset_internal
