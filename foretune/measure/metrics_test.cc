// Metrics beside the time, measured in the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Controls the family's behaviour by the config's value, and records its calls.
struct MetricScript {
  std::int64_t now_ns = 0;
  bool packs = false;
  std::vector<double> bind_ns;  // one after the other, then the last again and again
  int binds = 0;
  int binds_alive = 0;
  int most_binds_alive = 0;
  int fail_bind_from = 1000;
  std::map<std::int32_t, double> run_ns;
  std::int32_t wrong = -1;
  std::function<std::vector<MetricValue>(std::int32_t word)> metrics;
  std::function<Result<std::vector<MetricValue>>(std::int32_t word)> evaluate;
  std::vector<std::vector<std::string>> asked;
};

class MetricData final : public ProblemData {
 public:
  void poison() override { output = -1; }
  Support verify() override {
    return output == 42 ? Support::yes() : Support::no("the output is ", output);
  }
  std::int64_t bytes() const override { return 4; }
  int output = 0;
};

class MetricRun final : public Run {
 public:
  MetricRun(MetricScript& script, std::int32_t word, MetricData& data)
      : script_(script), word_(word), data_(data) {
    script_.most_binds_alive = std::max(script_.most_binds_alive, ++script_.binds_alive);
  }
  ~MetricRun() override { --script_.binds_alive; }
  void run() override {
    const auto found = script_.run_ns.find(word_);
    script_.now_ns +=
        static_cast<std::int64_t>(found == script_.run_ns.end() ? 1e4 : found->second);
    data_.output = word_ == script_.wrong ? 41 : 42;
  }
  bool packs_operands() const override { return script_.packs; }
  std::vector<MetricValue> metrics() override {
    return script_.metrics ? script_.metrics(word_) : std::vector<MetricValue>{};
  }
  Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) override {
    script_.asked.emplace_back(names.begin(), names.end());
    return script_.evaluate ? script_.evaluate(word_) : Run::evaluate(names);
  }

 private:
  MetricScript& script_;
  std::int32_t word_;
  MetricData& data_;
};

class MetricArtifact final : public Artifact {
 public:
  MetricArtifact(MetricScript& script, std::int32_t word) : script_(script), word_(word) {}
  Result<std::unique_ptr<Run>> bind(const Problem&, ProblemData& data) override {
    if (script_.binds >= script_.fail_bind_from) {
      return fail(ErrorCode::kInvalidArgument, "no memory left to pack into");
    }
    if (!script_.bind_ns.empty()) {
      const auto last = static_cast<int>(script_.bind_ns.size()) - 1;
      script_.now_ns += static_cast<std::int64_t>(
          script_.bind_ns[static_cast<std::size_t>(std::min(script_.binds, last))]);
    }
    ++script_.binds;
    return std::unique_ptr<Run>(
        std::make_unique<MetricRun>(script_, word_, static_cast<MetricData&>(data)));
  }

 private:
  MetricScript& script_;
  std::int32_t word_;
};

class MetricFamily final : public Family {
 public:
  explicit MetricFamily(MetricScript& script) : script_(script) {
    SpaceDefinition definition;
    definition.problem_type = kGemmProblem;
    definition.schema.name = "metrics";
    definition.schema.parameters = {{"x", {}}};
    definition.domains = {{0, 1, 2, 3}};
    info_.name = "metrics";
    info_.config_schema = definition.schema;
    info_.space = *CompiledSpace::create(definition);
  }
  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem&) const override { return Support::yes(); }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(auto bound, ParametricSpace::bind(info_.space, problem, {}));
    return std::unique_ptr<Space>(std::move(bound));
  }
  std::string artifact_key(const Problem&, const Config& config) const override {
    return std::to_string(config.words[0]);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem&, const Config& config) const override {
    return std::unique_ptr<Artifact>(std::make_unique<MetricArtifact>(script_, config.words[0]));
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem&, std::uint64_t) const override {
    return std::unique_ptr<ProblemData>(std::make_unique<MetricData>());
  }

 private:
  MetricScript& script_;
  FamilyInfo info_;
};

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    family = std::make_shared<MetricFamily>(script);
    MeasureHooks hooks;
    hooks.now_ns = [this] { return script.now_ns; };
    hooks.read_load = [] { return CpuLoad{}; };
    hooks.on_stage = [this](std::size_t config, Stage stage) {
      stages.emplace_back(config, stage);
    };
    measurer = make_local_measurer(family, {}, {.machine = 7}, hooks);
  }
  static Problem problem() { return GemmProblem::create({.m = 8, .n = 8, .k = 8})->to_problem(); }
  Config config(std::int32_t word) const {
    return {.schema = family->info().config_schema.id(), .words = {word}};
  }
  Measurement measure(std::int32_t word, double incumbent_ns = -1) {
    return measurer->measure(
        {.problem = problem(), .config = config(word), .incumbent_ns = incumbent_ns});
  }
  Measurement evaluate(std::int32_t word, std::vector<std::string> names = {"psnr_db"}) {
    return measurer->measure(
        {.problem = problem(), .config = config(word), .evaluate = std::move(names)});
  }

  MetricScript script;
  std::shared_ptr<MetricFamily> family;
  std::unique_ptr<Measurer> measurer;
  std::vector<std::pair<std::size_t, Stage>> stages;
};

TEST_F(MetricsTest, ARunThatPacksIsBoundAgainAndAgainAndTheFastestCounts) {
  script.packs = true;
  script.bind_ns = {9e6, 700, 500, 900, 800};
  const Measurement measurement = measure(1);
  ASSERT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
  const MetricValue* const pack = measurement.find(kPackNs);
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(pack->value, 500);
  EXPECT_EQ(pack->samples, 25U) << "short binds are repeated so often";
  EXPECT_EQ(script.binds, 1 + 25) << "the first one warms up";
  EXPECT_EQ(script.binds_alive, 0);
  EXPECT_EQ(script.most_binds_alive, 2) << "the operands are not kept twice";
  EXPECT_DOUBLE_EQ(measurement.find(kTimeNs)->value, 1e4);
}

TEST_F(MetricsTest, ALongBindIsRepeatedThreeTimesOnly) {
  script.packs = true;
  script.bind_ns = {5e6, 5e6, 4e6, 8e6};
  const Measurement measurement = measure(1);
  const MetricValue* const pack = measurement.find(kPackNs);
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(pack->value, 4e6);
  EXPECT_EQ(pack->samples, 3U);
  EXPECT_GT(pack->spread, 0);
}

TEST_F(MetricsTest, NothingIsBoundAgainWherePackingIsNone) {
  const Measurement measurement = measure(1);
  EXPECT_EQ(script.binds, 1);
  EXPECT_EQ(measurement.find(kPackNs), nullptr);
  script.packs = true;
  script.fail_bind_from = 4;
  const Measurement failed = measure(2);
  EXPECT_EQ(failed.outcome, Outcome::kOk) << "the time stands all the same";
  EXPECT_EQ(failed.find(kPackNs), nullptr);
}

TEST_F(MetricsTest, MetricsOfRunsComeWithOkAndCensoredRowsAlone) {
  script.metrics = [](std::int32_t word) {
    return std::vector<MetricValue>{{kWorkspaceBytes, 100.0 * word, 0, 1}};
  };
  script.run_ns = {{1, 1e5}, {2, 1e6}, {3, 1e5}};
  script.wrong = 3;
  EXPECT_EQ(measure(1).find(kWorkspaceBytes)->value, 100);
  const Measurement censored = measure(2, 1e5);
  ASSERT_EQ(censored.outcome, Outcome::kCensored);
  EXPECT_EQ(censored.find(kWorkspaceBytes)->value, 200);
  EXPECT_EQ(censored.find(kMedianNs), nullptr);
  const Measurement wrong = measure(3);
  ASSERT_EQ(wrong.outcome, Outcome::kWrongResult);
  EXPECT_TRUE(wrong.metrics.empty());
}

TEST_F(MetricsTest, ComparisonsCarryTheMetricsOfEachConfig) {
  script.packs = true;
  script.bind_ns = {600};
  script.metrics = [](std::int32_t word) {
    return std::vector<MetricValue>{{kWorkspaceBytes, 100.0 * word, 0, 1}};
  };
  script.wrong = 2;
  const std::vector<Config> configs{config(1), config(2), config(3)};
  const std::vector<Measurement> compared = measurer->compare(problem(), configs, 3);
  ASSERT_EQ(compared.size(), 3U);
  for (const std::size_t i : {0U, 2U}) {
    EXPECT_EQ(compared[i].find(kWorkspaceBytes)->value, 100.0 * static_cast<double>(i + 1));
    EXPECT_EQ(compared[i].find(kPackNs)->value, 600);
    EXPECT_EQ(compared[i].find(kTimeNs)->samples, 3U);
  }
  EXPECT_TRUE(compared[1].metrics.empty());
  // Reading the metrics may crash as well; the announced stage then names the config.
  EXPECT_EQ(stages.back(), std::pair(std::size_t{2}, Stage::kRun));
  EXPECT_EQ(stages[stages.size() - 2], std::pair(std::size_t{0}, Stage::kRun));
}

TEST_F(MetricsTest, OutOfMemoryOverMetricsIsTheConfigsOwnEnd) {
  script.metrics = [](std::int32_t word) {
    if (word == 2) {
      throw std::bad_alloc();
    }
    return std::vector<MetricValue>{};
  };
  const std::vector<Config> configs{config(1), config(2)};
  const std::vector<Measurement> compared = measurer->compare(problem(), configs, 3);
  EXPECT_EQ(compared[0].outcome, Outcome::kOk);
  EXPECT_EQ(compared[1].outcome, Outcome::kCrashed);
  EXPECT_TRUE(compared[1].metrics.empty());
  EXPECT_EQ(measure(2).outcome, Outcome::kCrashed);
}

TEST_F(MetricsTest, WhatIsNoNumberAndTimesOfTheFamilyAreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  script.metrics = [&](std::int32_t) {
    return std::vector<MetricValue>{{"a", nan}, {"b", 1}, {"c", 1, nan}, {kTimeNs, 5}};
  };
  const Measurement measurement = measure(1);
  EXPECT_DOUBLE_EQ(measurement.find(kTimeNs)->value, 1e4);
  ASSERT_EQ(measurement.metrics.size(), 3U);
  EXPECT_EQ(measurement.metrics[2].metric, "b");
}

TEST_F(MetricsTest, AnEvaluationTimesNothingAndSaysItsStage) {
  script.evaluate = [](std::int32_t word) {
    return std::vector<MetricValue>{{"psnr_db", 40.0 + word}, {"ssim", 0.5}};
  };
  const Measurement found = evaluate(1, {"psnr_db", "ssim"});
  EXPECT_EQ(found.outcome, Outcome::kOk);
  EXPECT_TRUE(found.is_evaluation());
  EXPECT_EQ(found.metrics, (std::vector<MetricValue>{{"psnr_db", 41}, {"ssim", 0.5}}));
  EXPECT_THAT(script.asked, ElementsAre(ElementsAre("psnr_db", "ssim")));
  EXPECT_EQ(script.now_ns, 0) << "nothing was run";
  EXPECT_EQ(stages.back(), std::pair(std::size_t{0}, Stage::kEvaluate));
}

TEST_F(MetricsTest, EvaluationsThatFailAreOutcomesOfTheirStage) {
  const auto outcome_of =
      [&](const std::function<Result<std::vector<MetricValue>>(std::int32_t)>& how) {
        script.evaluate = how;
        const Measurement failed = evaluate(1);
        EXPECT_TRUE(failed.is_evaluation());
        EXPECT_TRUE(failed.metrics.empty());
        return std::pair(failed.outcome, failed.reason);
      };
  using Values = std::vector<MetricValue>;
  EXPECT_EQ(outcome_of([](std::int32_t) {
              return Result<Values>(fail(ErrorCode::kUnsupported, "no data set here"));
            }),
            std::pair(Outcome::kUnsupported, std::string("no data set here")));
  EXPECT_EQ(outcome_of([](std::int32_t) {
              return Result<Values>(fail(ErrorCode::kIo, "the images are gone"));
            }),
            std::pair(Outcome::kPrepareFailed, std::string("the images are gone")));
  const std::string nothing = "the family yielded no finite psnr_db";
  EXPECT_EQ(outcome_of([](std::int32_t) { return Values{}; }),
            std::pair(Outcome::kPrepareFailed, nothing));
  EXPECT_EQ(outcome_of([](std::int32_t) { return Values{{"ssim", 1}}; }),
            std::pair(Outcome::kPrepareFailed, nothing));
  EXPECT_EQ(outcome_of([](std::int32_t) {
              return Values{{"psnr_db", std::numeric_limits<double>::infinity()}};
            }),
            std::pair(Outcome::kPrepareFailed, nothing));
  EXPECT_EQ(outcome_of([](std::int32_t) -> Result<Values> { throw std::bad_alloc(); }),
            std::pair(Outcome::kCrashed, std::string("out of memory")));
  script.evaluate = nullptr;
  EXPECT_EQ(evaluate(1).outcome, Outcome::kUnsupported);
  EXPECT_THAT(evaluate(1).reason, HasSubstr("no stage that finds out psnr_db"));
  // The failure does not affect the next measurement.
  EXPECT_EQ(measure(1).outcome, Outcome::kOk);
  EXPECT_EQ(measure(1).stage, Stage::kNone);
}

}  // namespace
}  // namespace foretune
