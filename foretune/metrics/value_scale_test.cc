#include "foretune/metrics/value_scale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace foretune {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ValueScale fitted(std::string_view metric, std::span<const double> values) {
  const auto scale = ValueScale::fit(metric_info(metric), values);
  EXPECT_TRUE(scale.has_value());
  EXPECT_TRUE(scale->validate());
  return scale.value_or(ValueScale{});
}

void expect_round_trip(const ValueScale& scale, std::span<const double> values) {
  for (const double value : values) {
    EXPECT_NEAR(scale.to_value(scale.to_z(value)), value, 1e-9 * (1 + std::fabs(value)));
  }
}

TEST(ValueScale, OfPositiveValuesIsTheLogarithm) {
  const std::array values{1.0, 10.0, 1e6, kNaN};
  const ValueScale scale = fitted("time_ns", values);
  EXPECT_EQ(scale, ValueScale{});
  EXPECT_EQ(scale.to_z(10), std::log(10.0));
  EXPECT_EQ(scale.text(), "ln v");
  expect_round_trip(scale, std::span(values).first(3));
}

TEST(ValueScale, OfValuesWithZerosHasAnOffset) {
  const std::array values{0.0, 0.0, 100.0, 200.0, 300.0};
  const ValueScale scale = fitted("pack_ns", values);
  EXPECT_EQ(scale.kind, ValueScale::Kind::kOffsetLog);
  EXPECT_DOUBLE_EQ(scale.offset, 2.0);
  EXPECT_LT(scale.to_z(0), scale.to_z(1));
  EXPECT_EQ(scale.to_value(scale.to_z(0) - 1), 0);
  expect_round_trip(scale, values);
  const std::array zeros{0.0, 0.0};
  EXPECT_DOUBLE_EQ(fitted("bytes", zeros).offset, 1);
}

TEST(ValueScale, OfWhatIsMaximisedOrNegativeIsLinear) {
  const std::array values{60.0, 70.0, 80.0, 90.0, 95.0};
  const ValueScale quality = fitted("qos_tune", values);
  EXPECT_EQ(quality.kind, ValueScale::Kind::kLinear);
  EXPECT_LT(quality.to_z(95), quality.to_z(60)) << "smaller is better";
  EXPECT_EQ(quality.to_z(80), 0);
  expect_round_trip(quality, values);
  const std::array negative{-5.0, 1.0, 2.0};
  const ValueScale loss = fitted("loss", negative);
  EXPECT_LT(loss.to_z(-5), loss.to_z(2));
  expect_round_trip(loss, negative);
}

TEST(ValueScale, OfEqualValuesIsFinite) {
  const std::array values{0.5, 0.5, 0.5};
  const ValueScale scale = fitted("qos_tune", values);
  EXPECT_EQ(scale.to_z(0.5), 0);
  EXPECT_EQ(std::fabs(scale.step), 1);
}

TEST(ValueScale, TellsWhatAnErrorIsWorth) {
  const std::array values{0.0, 100.0, 300.0};
  for (const std::string_view metric : {"pack_ns", "qos_tune"}) {
    const ValueScale scale = fitted(metric, values);
    const double z = scale.to_z(100);
    const double change = std::fabs(scale.to_value(z + 1e-6) - scale.to_value(z - 1e-6)) / 2e-6;
    EXPECT_NEAR(scale.value_per_z(z), change, 1e-3 * change);
  }
}

TEST(ValueScale, RefusesWhatMakesNoScale) {
  const std::array none{kNaN};
  EXPECT_FALSE(ValueScale::fit(metric_info("time_ns"), none).has_value());
  EXPECT_FALSE((ValueScale{.kind = ValueScale::Kind::kOffsetLog}.validate()));
  EXPECT_FALSE((ValueScale{.kind = ValueScale::Kind::kLinear, .step = 0}.validate()));
  EXPECT_FALSE((ValueScale{.kind = static_cast<ValueScale::Kind>(7)}.validate()));
  EXPECT_TRUE(std::isnan(ValueScale{}.to_z(-1)));
}

}  // namespace
}  // namespace foretune
