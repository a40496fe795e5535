#include "foretune/report/internal/metric_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace foretune::report_internal {
namespace {

using testing::ElementsAre;
using Kind = MetricScale::Kind;

MetricScale scale(std::vector<double> values, std::string_view unit = "ns",
                  std::vector<double> limits = {}) {
  return {values, limits, unit};
}

std::vector<std::string> texts(const MetricScale& scale) {
  std::vector<std::string> out;
  for (const formats::Tick& tick : scale.ticks()) {
    out.push_back(tick.text);
  }
  return out;
}

TEST(MetricScale, IsLogarithmicBeyondAFactorOfTen) {
  EXPECT_EQ(scale({100, 1000}).kind(), Kind::kLinear);
  EXPECT_EQ(scale({100, 1001}).kind(), Kind::kLog);
  EXPECT_EQ(scale({-1, 100, 10000}).kind(), Kind::kLinear);
  EXPECT_EQ(scale({std::nan(""), 100, 10000}).kind(), Kind::kLog);
}

TEST(MetricScale, HasAPlaceForZeroBeforeLogarithms) {
  EXPECT_EQ(scale({0, 100, 900}).kind(), Kind::kLinear);
  const MetricScale zero = scale({0, 100, 20000});
  EXPECT_EQ(zero.kind(), Kind::kLogWithZero);
  EXPECT_THAT(texts(zero), ElementsAre("0", "100 ns", "1 us", "10 us"));
  EXPECT_DOUBLE_EQ(zero.axis(50, 450).at(0), 50);
  EXPECT_GE(zero.axis(50, 450).at(100), 90);
  EXPECT_TRUE(zero.shows(0));
  EXPECT_FALSE(zero.shows(1));
}

TEST(MetricScale, HasTicksInAUnitThatFits) {
  EXPECT_THAT(texts(scale({1000, 3000})),
              ElementsAre("1.0 us", "1.5 us", "2.0 us", "2.5 us", "3.0 us"));
  EXPECT_THAT(texts(scale({1, 100}, "ms")),
              ElementsAre("1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms"));
  EXPECT_THAT(texts(scale({1024, 65536}, "B")), ElementsAre("1 KiB", "4 KiB", "16 KiB", "64 KiB"));
  EXPECT_THAT(texts(scale({0, 4096}, "B")),
              ElementsAre("0 KiB", "1 KiB", "2 KiB", "3 KiB", "4 KiB"));
  EXPECT_THAT(texts(scale({96, 98}, "%")),
              ElementsAre("96.0 %", "96.5 %", "97.0 %", "97.5 %", "98.0 %"));
  EXPECT_THAT(texts(scale({-2, 2}, "")), ElementsAre("-2", "-1", "0", "1", "2"));
}

TEST(MetricScale, MakesRoomForLimitsThatAreNear) {
  const MetricScale near = scale({100, 200}, "ns", {250});
  EXPECT_TRUE(near.shows(250));
  const MetricScale far = scale({100, 200}, "ns", {2500});
  EXPECT_FALSE(far.shows(2500));
  EXPECT_LT(far.range().high, 250);
  EXPECT_TRUE(scale({1, 100}, "ns", {900}).shows(900));
  EXPECT_FALSE(scale({1, 100}, "ns", {9000}).shows(9000));
}

TEST(MetricScale, OneValueAndNoneHaveARange) {
  for (const MetricScale& each : {scale({5}), scale({0}), scale({}), scale({-5}, "dB")}) {
    EXPECT_LT(each.range().low, each.range().high);
    EXPECT_FALSE(each.ticks().empty());
  }
}

}  // namespace
}  // namespace foretune::report_internal
