#include "foretune/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace foretune {
namespace {

using ::testing::HasSubstr;

TEST(Metric, NumbersOfDirectionsAndStagesAreThoseInFiles) {
  EXPECT_EQ(static_cast<int>(Direction::kMinimise), 0);
  EXPECT_EQ(static_cast<int>(Direction::kMaximise), 1);
  EXPECT_EQ(static_cast<int>(MetricStage::kRun), 0);
  EXPECT_EQ(static_cast<int>(MetricStage::kEvaluation), 1);
  EXPECT_EQ(to_string(Direction::kMinimise), "minimise");
  EXPECT_EQ(to_string(Direction::kMaximise), "maximise");
}

TEST(Metric, CommonOnesAreValidDistinctAndKnownByName) {
  std::set<std::string> names;
  for (const MetricInfo& info : common_metrics()) {
    EXPECT_TRUE(check_metric_info(info)) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(metric_info(info.name), info);
  }
  EXPECT_EQ(names, (std::set<std::string>{"time_ns", "median_ns", "pack_ns", "energy_j", "bytes",
                                          "qos_tune", "qos_test"}));
  EXPECT_EQ(metric_info(kTimeNs).unit, "ns");
  EXPECT_EQ(metric_info(kWorkspaceBytes).unit, "B");
  EXPECT_EQ(metric_info("qos_tune").direction, Direction::kMaximise);
  EXPECT_EQ(metric_info(kEnergyJ).stage, MetricStage::kEvaluation);
}

TEST(Metric, ANameThatNobodyDeclaredIsToMinimiseWithoutUnit) {
  EXPECT_EQ(metric_info("registers"), (MetricInfo{.name = "registers", .unit = ""}));
}

TEST(Metric, IsFoundByNameTheFirstOfEqualNames) {
  const std::vector<MetricValue> values{{"time_ns", 5}, {"bytes", 7, 0.1, 3}, {"time_ns", 6}};
  EXPECT_EQ(find_metric(values, "time_ns"), &values[0]);
  EXPECT_EQ(find_metric(values, "bytes")->samples, 3U);
  EXPECT_EQ(find_metric(values, "byte"), nullptr);
  EXPECT_EQ(find_metric(std::span<const MetricValue>(), "time_ns"), nullptr);
  const std::vector<MetricInfo> infos{{.name = "a", .unit = ""}, {.name = "b", .unit = "dB"}};
  EXPECT_EQ(find_metric(infos, "b"), &infos[1]);
  EXPECT_EQ(find_metric(infos, "c"), nullptr);
}

TEST(MetricInfo, NamesAreLettersDigitsAndUnderscores) {
  for (const char* name : {"a", "Z", "time_ns", "x86_64", "a_"}) {
    EXPECT_TRUE(check_metric_info({.name = name, .unit = ""})) << name;
  }
  EXPECT_TRUE(check_metric_info({.name = std::string(64, 'a'), .unit = ""}));
  for (const char* name : {"", "_a", "2fast", "a-b", "a b", "a:b", "caf\xc3\xa9", "a.b"}) {
    const Status status = check_metric_info({.name = name, .unit = ""});
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr(std::string("'") + name + "'"));
  }
  EXPECT_FALSE(check_metric_info({.name = std::string(65, 'a'), .unit = ""}));
}

TEST(MetricInfo, UnitsAreShortAndWithoutSeparators) {
  for (const char* unit : {"", "ns", "%", "img/s", "1/s", "m^2"}) {
    EXPECT_TRUE(check_metric_info({.name = "a", .unit = unit})) << unit;
  }
  EXPECT_TRUE(check_metric_info({.name = "a", .unit = std::string(16, 'u')}));
  EXPECT_FALSE(check_metric_info({.name = "a", .unit = std::string(17, 'u')}));
  for (const char* unit : {"n s", ":", "a,b", "\"", "\n"}) {
    EXPECT_FALSE(check_metric_info({.name = "a", .unit = unit})) << unit;
  }
}

TEST(MetricInfo, TextOfACommonOneIsItsName) {
  EXPECT_EQ(to_text(metric_info("time_ns")), "time_ns");
  EXPECT_EQ(to_text(metric_info("qos_test")), "qos_test");
  MetricInfo other = metric_info("time_ns");
  other.direction = Direction::kMaximise;
  EXPECT_EQ(to_text(other), "time_ns:maximise:ns");
}

TEST(MetricInfo, TextReadsBackToTheSameInfo) {
  for (const char* name : {"time_ns", "energy_j", "psnr_db", "a"}) {
    for (const char* unit : {"", "ns", "dB", "%"}) {
      for (const Direction direction : {Direction::kMinimise, Direction::kMaximise}) {
        for (const MetricStage stage : {MetricStage::kRun, MetricStage::kEvaluation}) {
          const MetricInfo info{.name = name, .unit = unit, .direction = direction, .stage = stage};
          const Result<MetricInfo> back = parse_metric_info(to_text(info));
          ASSERT_TRUE(back) << to_text(info);
          EXPECT_EQ(*back, info) << to_text(info);
        }
      }
    }
  }
}

TEST(MetricInfo, ParsesEveryForm) {
  EXPECT_EQ(parse_metric_info("bytes").value(), metric_info("bytes"));
  EXPECT_EQ(parse_metric_info("registers").value(), metric_info("registers"));
  EXPECT_EQ(parse_metric_info("psnr_db:maximise:dB").value(),
            (MetricInfo{.name = "psnr_db", .unit = "dB", .direction = Direction::kMaximise}));
  EXPECT_EQ(parse_metric_info("top1:maximise").value(),
            (MetricInfo{.name = "top1", .unit = "", .direction = Direction::kMaximise}));
  // A text with a direction describes the metric completely: nothing of the common metric is left.
  EXPECT_EQ(parse_metric_info("energy_j:minimise:mJ").value(),
            (MetricInfo{.name = "energy_j", .unit = "mJ"}));
  EXPECT_EQ(parse_metric_info("loss:minimise::evaluation").value(),
            (MetricInfo{.name = "loss", .unit = "", .stage = MetricStage::kEvaluation}));
}

TEST(MetricInfo, ParseRefusesAnythingElseAndNamesIt) {
  for (const char* text : {"", ":", "a:", "a:smaller", "a:minimise:ns:later", "2:minimise:ns",
                           "a:minimise:n s", "a:minimise:ns:evaluation:", "time_ns:ns"}) {
    const Result<MetricInfo> info = parse_metric_info(text);
    ASSERT_FALSE(info) << text;
    EXPECT_EQ(info.error().code, ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(parse_metric_info("a:smaller").error().message, HasSubstr("'a:smaller'"));
}

}  // namespace
}  // namespace foretune
