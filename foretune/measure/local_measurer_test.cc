#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "foretune/measure/cache_evictor.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

// Records the calls to the family under test, and controls its behaviour.
struct Script {
  std::int64_t now_ns = 0;
  std::vector<std::string> calls;
  std::map<std::int32_t, double> run_ns;  // by the config's word; absent: 10 us
  std::int32_t unsupported = -1;
  std::int32_t fails_to_prepare = -1;
  std::int32_t fails_to_bind = -1;
  std::int32_t wrong = -1;
  std::int32_t leaves_poison = -1;
  std::int32_t out_of_memory = -1;
  bool data_fails = false;
  bool problem_unknown = false;
  int data_made = 0;
  int prepared = 0;
  int spaces = 0;
};

class ScriptedData final : public ProblemData {
 public:
  explicit ScriptedData(Script& script) : script_(script) {}
  void poison() override {
    output = -1;
    script_.calls.emplace_back("poison");
  }
  Support verify() override {
    script_.calls.emplace_back("verify");
    return output == 42 ? Support::yes() : Support::no("the output is ", output);
  }
  std::int64_t bytes() const override { return 4; }
  int output = 0;

 private:
  Script& script_;
};

class ScriptedRun final : public Run {
 public:
  ScriptedRun(Script& script, std::int32_t word, ScriptedData& data)
      : script_(script), word_(word), data_(data) {}
  void run() override {
    if (word_ == script_.out_of_memory) {
      throw std::bad_alloc();
    }
    const auto found = script_.run_ns.find(word_);
    script_.now_ns +=
        static_cast<std::int64_t>(found == script_.run_ns.end() ? 1e4 : found->second);
    if (word_ != script_.leaves_poison) {
      data_.output = word_ == script_.wrong ? 41 : 42;
    }
    const std::string name = "run" + std::to_string(word_);
    if (script_.calls.empty() || script_.calls.back() != name) {
      script_.calls.push_back(name);
    }
  }

 private:
  Script& script_;
  std::int32_t word_;
  ScriptedData& data_;
};

class ScriptedArtifact final : public Artifact {
 public:
  ScriptedArtifact(Script& script, std::int32_t word) : script_(script), word_(word) {}
  Result<std::unique_ptr<Run>> bind(const Problem& /*problem*/, ProblemData& data) override {
    if (word_ == script_.fails_to_bind) {
      return fail(ErrorCode::kInvalidArgument, "no binding today");
    }
    return std::unique_ptr<Run>(
        std::make_unique<ScriptedRun>(script_, word_, static_cast<ScriptedData&>(data)));
  }

 private:
  Script& script_;
  std::int32_t word_;
};

class ScriptedFamily final : public Family {
 public:
  explicit ScriptedFamily(Script& script) : script_(script) {
    SpaceDefinition definition;
    definition.problem_type = kGemmProblem;
    definition.schema.name = "scripted";
    definition.schema.parameters = {{"x", {}}};
    definition.domains = {{0, 1, 2, 3, 4, 5, 6, 7}};
    definition.constraints = {{"x != 7", "seven is not allowed"}};
    auto compiled = CompiledSpace::create(definition);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
    info_.name = "scripted";
    info_.config_schema = definition.schema;
    info_.space = *compiled;
    info_.fingerprint.hardware.set(HardwareValue::kClockMhz, 3000);
  }
  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem&) const override {
    return script_.problem_unknown ? Support::no("never heard of it") : Support::yes();
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    ++script_.spaces;
    FORETUNE_TRY(auto bound, ParametricSpace::bind(info_.space, problem, {}));
    return std::unique_ptr<Space>(std::move(bound));
  }
  std::string artifact_key(const Problem&, const Config& config) const override {
    return std::to_string(config.words[0]);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem&, const Config& config) const override {
    ++script_.prepared;
    const std::int32_t word = config.words[0];
    if (word == script_.unsupported) {
      return fail(ErrorCode::kUnsupported, "not on this machine");
    }
    if (word == script_.fails_to_prepare) {
      return fail(ErrorCode::kInvalidArgument, "does not compile");
    }
    return std::unique_ptr<Artifact>(std::make_unique<ScriptedArtifact>(script_, word));
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem&, std::uint64_t) const override {
    ++script_.data_made;
    if (script_.data_fails) {
      return fail(ErrorCode::kIo, "no inputs");
    }
    return std::unique_ptr<ProblemData>(std::make_unique<ScriptedData>(script_));
  }

 private:
  Script& script_;
  FamilyInfo info_;
};

class LocalMeasurerTest : public testing::Test {
 protected:
  void make(const Protocol& protocol = {}) {
    family = std::make_shared<ScriptedFamily>(script);
    MeasureHooks hooks;
    hooks.now_ns = [this] { return script.now_ns; };
    hooks.read_load = [this] {
      ++loads_read;
      return load;
    };
    if (waits_are_known) {
      hooks.read_waits = [this] { return waits; };
    }
    hooks.on_stage = [this](std::size_t config, Stage stage) {
      stages.emplace_back(config, stage);
    };
    Context context;
    context.machine = 77;
    context.device = "test bench";
    measurer = make_local_measurer(family, protocol, context, hooks);
  }
  static Problem problem(std::int64_t m) {
    return GemmProblem::create({.m = m, .n = 8, .k = 8})->to_problem();
  }
  Config config(std::int32_t word) const {
    Config config;
    config.schema = family->info().config_schema.id();
    config.words = {word};
    return config;
  }
  Measurement measure(std::int32_t word, double incumbent_ns = -1, std::int64_t m = 8) {
    return measurer->measure(
        {.problem = problem(m), .config = config(word), .incumbent_ns = incumbent_ns});
  }

  Script script;
  CpuLoad load;
  bool waits_are_known = false;
  Waits waits;  // of every slice
  int loads_read = 0;
  std::vector<std::pair<std::size_t, Stage>> stages;
  std::shared_ptr<ScriptedFamily> family;
  std::unique_ptr<Measurer> measurer;
};

TEST_F(LocalMeasurerTest, MeasuresWithMinimumMedianAndContext) {
  make();
  const Measurement measurement = measure(1);
  EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
  EXPECT_EQ(measurement.problem, problem(8));
  EXPECT_EQ(measurement.config, config(1));
  EXPECT_EQ(measurement.context.machine, 77U);
  ASSERT_NE(measurement.find(kTimeNs), nullptr);
  EXPECT_DOUBLE_EQ(measurement.find(kTimeNs)->value, 1e4);
  ASSERT_NE(measurement.find(kMedianNs), nullptr);
  EXPECT_EQ(measurement.find(kTimeNs)->samples, 5U);
  EXPECT_TRUE(measurement.samples_ns.empty());
  EXPECT_THAT(stages, testing::ElementsAre(
                          testing::Pair(0, Stage::kPrepare), testing::Pair(0, Stage::kBind),
                          testing::Pair(0, Stage::kRun), testing::Pair(0, Stage::kVerify)));
}

TEST_F(LocalMeasurerTest, PoisonsBeforeAndVerifiesOnceAfter) {
  make();
  measure(1);
  EXPECT_THAT(script.calls, testing::ElementsAre("poison", "run1", "verify"));
}

TEST_F(LocalMeasurerTest, WrongResultAndUnwrittenOutputAreFound) {
  script.wrong = 2;
  script.leaves_poison = 3;
  make();
  for (const std::int32_t word : {2, 3}) {
    const Measurement measurement = measure(word);
    EXPECT_EQ(measurement.outcome, Outcome::kWrongResult);
    EXPECT_EQ(measurement.stage, Stage::kVerify);
    EXPECT_THAT(measurement.reason, testing::HasSubstr("the output is"));
    EXPECT_TRUE(measurement.metrics.empty());
  }
}

TEST_F(LocalMeasurerTest, AWrongResultIsFoundAlsoWhenStoppedEarly) {
  script.wrong = 2;
  script.run_ns[2] = 1e6;
  make();
  EXPECT_EQ(measure(2, 1e4).outcome, Outcome::kWrongResult);
}

TEST_F(LocalMeasurerTest, CensoredRowsHoldABoundAndNoMedian) {
  script.run_ns[2] = 1e5;
  make();
  const Measurement measurement = measure(2, 1e4);
  EXPECT_EQ(measurement.outcome, Outcome::kCensored);
  ASSERT_EQ(measurement.metrics.size(), 1U);
  EXPECT_GE(measurement.metrics[0].value, 2e4);
  EXPECT_LE(measurement.metrics[0].value, 1e5);
  EXPECT_THAT(measurement.reason, testing::HasSubstr("slower than 2 times"));
}

TEST_F(LocalMeasurerTest, EveryFailureHasItsOutcomeAndStage) {
  script.unsupported = 1;
  script.fails_to_prepare = 2;
  script.fails_to_bind = 3;
  script.out_of_memory = 4;
  make();
  const auto expect = [&](std::int32_t word, Outcome outcome, Stage stage, const char* reason) {
    const Measurement measurement = measure(word);
    EXPECT_EQ(measurement.outcome, outcome) << word;
    EXPECT_EQ(measurement.stage, stage) << word;
    EXPECT_THAT(measurement.reason, testing::HasSubstr(reason)) << word;
    EXPECT_TRUE(measurement.metrics.empty()) << word;
  };
  expect(1, Outcome::kUnsupported, Stage::kPrepare, "not on this machine");
  expect(2, Outcome::kPrepareFailed, Stage::kPrepare, "does not compile");
  expect(3, Outcome::kPrepareFailed, Stage::kBind, "no binding today");
  expect(4, Outcome::kCrashed, Stage::kRun, "out of memory");
  expect(7, Outcome::kUnsupported, Stage::kNone, "seven is not allowed");
  EXPECT_EQ(measure(0).outcome, Outcome::kOk);
}

TEST_F(LocalMeasurerTest, ProblemsThatCannotBeMadeAreRefusedEveryTime) {
  script.data_fails = true;
  make();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(measure(1).outcome, Outcome::kPrepareFailed);
    EXPECT_EQ(measure(1).reason, "no inputs");
  }
  EXPECT_EQ(script.data_made, 1);
  script.problem_unknown = true;
  EXPECT_EQ(measure(1, -1, 16).outcome, Outcome::kUnsupported);
}

TEST_F(LocalMeasurerTest, DataAndSpaceAreMadeOncePerProblemArtifactsOncePerKey) {
  make();
  measure(1);
  measure(2);
  measure(1);
  EXPECT_EQ(script.data_made, 1);
  EXPECT_EQ(script.spaces, 1);
  EXPECT_EQ(script.prepared, 2);
  measure(1, -1, 16);
  EXPECT_EQ(script.data_made, 2);
  EXPECT_EQ(script.prepared, 2);
}

TEST_F(LocalMeasurerTest, SamplesAreKeptWhenAskedFor) {
  Protocol protocol;
  protocol.keep_samples = true;
  make(protocol);
  EXPECT_EQ(measure(1).samples_ns.size(), 5U);
}

TEST_F(LocalMeasurerTest, VerifyingCanBeLeftOut) {
  Protocol protocol;
  protocol.verify = false;
  script.wrong = 1;
  make(protocol);
  EXPECT_EQ(measure(1).outcome, Outcome::kOk);
}

TEST_F(LocalMeasurerTest, LoadAndClockAreFlagged) {
  make();
  // The load average includes this process, so it is no evidence.
  load = {.load_average = 5, .frequency_mhz = 2900, .other_cores = 0.1};
  EXPECT_EQ(measure(1).flags, 0);
  load = {.load_average = 0, .frequency_mhz = 2900, .other_cores = 0.4};
  script.now_ns += 2'000'000'000;
  EXPECT_EQ(measure(1).flags, kFlagLoaded);
  load = {.load_average = 0, .frequency_mhz = 2000, .other_cores = 0};
  script.now_ns += 2'000'000'000;
  EXPECT_EQ(measure(1).flags, kFlagThrottled);
  // Reading the load costs more than a short kernel, so it happens once a second.
  const int before = loads_read;
  for (int i = 0; i < 20; ++i) {
    measure(1);
  }
  EXPECT_LE(loads_read, before + 1);
}

// Other processes may run as long as the measuring threads have their cores.
TEST_F(LocalMeasurerTest, WhereWaitsAreKnownOnlyTheyAndTheHypervisorMark) {
  waits_are_known = true;
  make();
  load = {.load_average = 5, .frequency_mhz = 2900, .other_cores = 1};
  EXPECT_EQ(measure(1).flags, 0);
  waits = {.longest_ns = 1e6, .all_ns = 1e6};
  EXPECT_EQ(measure(2).flags, kFlagLoaded);
  EXPECT_EQ(measurer->compare(problem(8), std::vector<Config>{config(1)}, 2).front().flags,
            kFlagLoaded | kFlagReference);
  waits = {};
  EXPECT_EQ(measure(2).flags, 0);
  load.withheld_cores = 0.5;
  script.now_ns += 2'000'000'000;
  EXPECT_EQ(measure(1).flags, kFlagLoaded);
}

TEST_F(LocalMeasurerTest, ComparesInterleavedAndVerifiesEach) {
  script.run_ns = {{1, 1e6}, {2, 2e6}, {3, 3e6}};
  script.wrong = 3;
  make();
  const std::vector<Config> configs{config(1), config(2), config(3)};
  const std::vector<Measurement> measurements = measurer->compare(problem(8), configs, 4);
  ASSERT_EQ(measurements.size(), 3U);
  EXPECT_DOUBLE_EQ(measurements[0].find(kTimeNs)->value, 1e6);
  EXPECT_DOUBLE_EQ(measurements[1].find(kTimeNs)->value, 2e6);
  EXPECT_EQ(measurements[0].find(kTimeNs)->samples, 4U);
  EXPECT_EQ(measurements[2].outcome, Outcome::kWrongResult);
  for (const Measurement& measurement : measurements) {
    EXPECT_NE(measurement.flags & kFlagReference, 0);
  }
  // Each run is warmed up and verified alone, then timed window by window: 1 2, 2 1, 1 2, 2 1.
  EXPECT_THAT(script.calls, testing::ElementsAre("poison", "run1", "verify", "poison", "run2",
                                                 "verify", "poison", "run3", "verify", "run1",
                                                 "run2", "run1", "run2", "run1", "run2"));
}

TEST_F(LocalMeasurerTest, ColdModeRunsWithTheRealEvictor) {
  Protocol protocol;
  protocol.cache = CacheState::kCold;
  make(protocol);
  const Measurement measurement = measure(1);
  EXPECT_EQ(measurement.outcome, Outcome::kOk);
  EXPECT_EQ(measurement.context.cache, CacheState::kCold);
}

TEST(CacheEvictor, WalksOverMoreThanTheCachesHold) {
  Hardware hardware;
  EXPECT_EQ(eviction_bytes(hardware), std::size_t{64} << 20U);
  hardware.set(HardwareValue::kCores, 2);
  hardware.set(HardwareValue::kL2Bytes, 2.0 * (1 << 20));
  hardware.set(HardwareValue::kL3Bytes, 32.0 * (1 << 20));
  EXPECT_GE(eviction_bytes(hardware), std::size_t{40} << 20U);
  hardware.set(HardwareValue::kL3Bytes, 4e9);
  EXPECT_EQ(eviction_bytes(hardware), std::size_t{512} << 20U);
  CacheEvictor evictor(1 << 20U);
  evictor.evict();
}

}  // namespace
}  // namespace foretune
