#include "foretune/measure/known_measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "foretune/base/text.h"
#include "foretune/measure/testing/measurers.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

using testing_support::HashMeasurer;

// Gives the scripted answers, once each.
class ScriptedMeasurer final : public Measurer {
 public:
  Measurement measure(const Request& request) override {
    ++calls;
    return {.problem = request.problem,
            .config = request.config,
            .context = context_,
            .outcome = outcome,
            .metrics = metrics};
  }
  std::vector<Measurement> compare(const Problem& /*problem*/, std::span<const Config> configs,
                                   int /*rounds*/) override {
    compared = configs.size();
    return {};
  }
  const Context& context() const override { return context_; }

  Outcome outcome = Outcome::kOk;
  std::vector<MetricValue> metrics;
  std::size_t calls = 0;
  std::size_t compared = 0;

 private:
  Context context_{.threads = 1};
};

class Borrowed final : public Measurer {
 public:
  explicit Borrowed(Measurer& measurer) : measurer_(measurer) {}
  Measurement measure(const Request& request) override { return measurer_.measure(request); }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return measurer_.compare(problem, configs, rounds);
  }
  const Context& context() const override { return measurer_.context(); }

 private:
  Measurer& measurer_;
};

class KnownMeasurerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              concat("known-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static DatasetHeader header() {
    DatasetHeader out;
    out.family = "loop-nest";
    out.problem_type = find_problem_type("nest_mm")->schema.type;
    out.config_schema = {
        .name = "words", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
    return out;
  }
  static Problem problem(int m) {
    return Problem::parse(concat("nest_mm m=", m, " n=8 k=8")).value();
  }
  static Config config(std::int32_t word) {
    return {header().config_schema.id(), Config::Words({word})};
  }
  // The caller may inspect `inner` as long as the result lives.
  [[nodiscard]] std::unique_ptr<KnownMeasurer> open(Measurer& inner) const {
    auto known = KnownMeasurements::open(folder_ / "known.ftd", header());
    EXPECT_TRUE(known) << known.error().message;
    return std::make_unique<KnownMeasurer>(std::make_unique<Borrowed>(inner), *std::move(known));
  }

  std::filesystem::path folder_;
};

TEST_F(KnownMeasurerTest, AsksOnceAndAcrossFiles) {
  HashMeasurer inner(4);
  std::vector<Measurement> first;
  {
    const auto known = open(inner);
    for (std::int32_t word = 0; word < 50; ++word) {
      first.push_back(known->measure({.problem = problem(8), .config = config(word)}));
    }
    EXPECT_EQ(inner.calls(), 50U);
    for (std::int32_t word = 0; word < 50; ++word) {
      const Measurement again = known->measure({.problem = problem(8), .config = config(word)});
      EXPECT_EQ(again.outcome, first[static_cast<std::size_t>(word)].outcome);
      EXPECT_EQ(again.reason, first[static_cast<std::size_t>(word)].reason);
    }
    EXPECT_EQ(inner.calls(), 50U);
    EXPECT_EQ(known->hits(), 50U);
    EXPECT_TRUE(known->status()) << known->status().error().message;
  }
  // Another problem is not known, and another process begins with the measurements of this one.
  const auto later = open(inner);
  later->measure({.problem = problem(16), .config = config(3)});
  EXPECT_EQ(inner.calls(), 51U);
  for (std::int32_t word = 0; word < 50; ++word) {
    const Measurement& before = first[static_cast<std::size_t>(word)];
    const Measurement again = later->measure({.problem = problem(8), .config = config(word)});
    ASSERT_EQ(again.outcome, before.outcome);
    if (before.outcome == Outcome::kOk) {
      EXPECT_FLOAT_EQ(static_cast<float>(again.find(kTimeNs)->value),
                      static_cast<float>(before.find(kTimeNs)->value));
    }
  }
  EXPECT_EQ(inner.calls(), 51U);
}

TEST_F(KnownMeasurerTest, ABoundAnswersOnlyWhereItSaysEnough) {
  ScriptedMeasurer inner;
  inner.outcome = Outcome::kCensored;
  inner.metrics = {{kTimeNs, 1000, 0, 1}};
  const auto known = open(inner);
  const auto ask = [&](double incumbent_ns) {
    return known->measure(
        {.problem = problem(8), .config = config(1), .incumbent_ns = incumbent_ns});
  };
  ask(400);
  EXPECT_EQ(inner.calls, 1U);
  EXPECT_EQ(ask(500).outcome, Outcome::kCensored);
  EXPECT_EQ(inner.calls, 1U) << "it takes at least twice as long";
  inner.outcome = Outcome::kOk;
  inner.metrics = {{kTimeNs, 1500, 0, 5}};
  EXPECT_EQ(ask(-1).outcome, Outcome::kOk) << "nothing to compare it with";
  EXPECT_EQ(inner.calls, 2U);
  EXPECT_EQ(ask(-1).outcome, Outcome::kOk);
  EXPECT_EQ(ask(5000).outcome, Outcome::kOk);
  EXPECT_EQ(inner.calls, 2U);
}

TEST_F(KnownMeasurerTest, WhatNoConfigCausesIsNotKept) {
  ScriptedMeasurer inner;
  inner.outcome = Outcome::kCrashed;
  const auto known = open(inner);
  known->measure({.problem = problem(8), .config = config(1)});
  known->measure({.problem = problem(8), .config = config(1)});
  EXPECT_EQ(inner.calls, 2U);
  const std::vector<Config> pair{config(1), config(2)};
  known->compare(problem(8), pair, 3);
  EXPECT_EQ(inner.compared, 2U);
  known->measure({.problem = problem(8), .config = config(1), .evaluate = {"energy_j"}});
  EXPECT_EQ(inner.calls, 3U);
  EXPECT_EQ(known->misses(), 0U);
}

TEST_F(KnownMeasurerTest, OneProcessAtATimeAndOneMachine) {
  HashMeasurer inner;
  const auto known = open(inner);
  const auto second = KnownMeasurements::open(folder_ / "known.ftd", header());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace foretune
