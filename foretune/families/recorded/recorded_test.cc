#include "foretune/families/recorded/recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/families/recorded/triton_space.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::HasSubstr;

ConfigSchema small_schema() {
  ConfigSchema schema;
  schema.name = "small";
  schema.parameters = {{"a", {}}, {"b", {}}};
  return schema;
}

Config config(std::int32_t a, std::int32_t b) {
  Config config;
  config.schema = small_schema().id();
  config.words = {a, b};
  return config;
}

Problem problem(std::int64_t m) {
  return GemmProblem::create({.m = m, .n = 32, .k = 64, .dtype = DataType::kBf16})->to_problem();
}

RecordedTable table_of(std::vector<RecordedRow> rows) {
  RecordedTable table;
  table.problem_type = kGemmProblem;
  table.schema = small_schema();
  table.fingerprint = h200_fingerprint();
  table.source = "memory";
  table.rows = std::move(rows);
  return table;
}

std::unique_ptr<Family> some_family() {
  auto family = make_recorded(table_of({
      {problem(2), config(8, 1), 200},
      {problem(1), config(1, 1), 100, 0.03},
      {problem(1), config(4, 1), 110},
      {problem(1), config(2, 1), 120, 0, RecordedOutcome::kBound},
      {problem(1), config(1, 8), 0, 0, RecordedOutcome::kFailed, "crashed: SIGSEGV"},
      {problem(1), config(1, 16), 0, 0, RecordedOutcome::kRefused, "too much shared memory"},
      {problem(1), config(4, 2), 130},
  }));
  EXPECT_TRUE(family) << (family ? "" : family.error().message);
  return *std::move(family);
}

TEST(Recorded, TheSpaceIsWhatWasMeasured) {
  const auto family = some_family();
  EXPECT_THAT(recorded_problems(*family), testing::ElementsAre(problem(2), problem(1)));
  const auto space = *family->space(problem(1));
  ASSERT_NE(space->enumerable(), nullptr);
  ASSERT_EQ(space->enumerable()->count(), 6U);
  std::vector<Config> all;
  for (std::uint64_t i = 0; i < 6; ++i) {
    all.push_back(space->enumerable()->unrank(i));
    EXPECT_TRUE(space->why_not(all.back()));
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  const Support no = space->why_not(config(8, 1));
  EXPECT_FALSE(no);
  EXPECT_THAT(no.reason(), HasSubstr("was not measured"));
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(space->why_not(*space->sample(rng)));
  }
}

TEST(Recorded, NeighboursAreTheNearestRecordedValues) {
  const auto space = *some_family()->space(problem(1));
  EXPECT_THAT(space->neighbours(config(2, 1)), testing::ElementsAre(config(1, 1), config(4, 1)));
  EXPECT_THAT(space->neighbours(config(1, 8)), testing::ElementsAre(config(1, 1), config(1, 16)));
  // Also of a config that was not recorded itself.
  EXPECT_THAT(space->neighbours(config(4, 8)), testing::ElementsAre(config(1, 8), config(4, 2)));
}

TEST(Recorded, UnknownProblemsAreRefused) {
  const auto family = some_family();
  EXPECT_FALSE(family->supports(problem(3)));
  const auto space = family->space(problem(3));
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(family->make_data(problem(3), 1));
}

TEST(Recorded, MeasuringReplaysEveryOutcomeAndRepeats) {
  const std::shared_ptr<const Family> family = some_family();
  EXPECT_FALSE(family->info().needs_worker);
  EXPECT_TRUE(family->info().simulated);
  const auto measurer = make_local_measurer(family, {}, {});
  const auto measure = [&](const Config& wanted, double incumbent_ns = -1) {
    return measurer->measure(
        {.problem = problem(1), .config = wanted, .incumbent_ns = incumbent_ns});
  };
  const Measurement good = measure(config(1, 1));
  EXPECT_EQ(good.outcome, Outcome::kOk) << good.reason;
  EXPECT_DOUBLE_EQ(good.metrics.at(0).value, 100);
  EXPECT_DOUBLE_EQ(good.metrics.at(0).spread, 0.03);
  EXPECT_EQ(good.flags, 0);
  EXPECT_EQ(good, measure(config(1, 1)));
  const Measurement bound = measure(config(2, 1));
  EXPECT_EQ(bound.outcome, Outcome::kCensored);
  EXPECT_DOUBLE_EQ(bound.metrics.at(0).value, 120);
  const Measurement failed = measure(config(1, 8));
  EXPECT_EQ(failed.outcome, Outcome::kPrepareFailed);
  EXPECT_THAT(failed.reason, HasSubstr("SIGSEGV"));
  EXPECT_EQ(measure(config(1, 16)).outcome, Outcome::kUnsupported);
  EXPECT_EQ(measure(config(8, 8)).outcome, Outcome::kUnsupported);
  EXPECT_EQ(measure(config(4, 2), 60).outcome, Outcome::kCensored);
  const std::vector<Config> pair{config(4, 1), config(1, 1)};
  const std::vector<Measurement> compared = measurer->compare(problem(1), pair, 3);
  EXPECT_DOUBLE_EQ(compared.at(0).metrics.at(0).value, 110);
  EXPECT_DOUBLE_EQ(compared.at(1).metrics.at(0).value, 100);
}

TEST(Recorded, RepeatedRowsAreMerged) {
  const std::shared_ptr<const Family> family = *make_recorded(table_of({
      {problem(1), config(1, 1), 100},
      {problem(1), config(1, 1), 0, 0, RecordedOutcome::kFailed, "once"},
      {problem(1), config(1, 1), 300},
      {problem(1), config(1, 1), 110},
      {problem(1), config(2, 1), 50, 0, RecordedOutcome::kBound},
      {problem(1), config(2, 1), 70, 0, RecordedOutcome::kBound},
      {problem(1), config(2, 1), 0, 0, RecordedOutcome::kRefused, "once"},
  }));
  const auto measurer = make_local_measurer(family, {}, {});
  EXPECT_DOUBLE_EQ(
      measurer->measure({.problem = problem(1), .config = config(1, 1)}).metrics.at(0).value, 110);
  EXPECT_DOUBLE_EQ(
      measurer->measure({.problem = problem(1), .config = config(2, 1)}).metrics.at(0).value, 70);
}

TEST(Recorded, BadTablesAreRefused) {
  const auto message = [](RecordedTable table) {
    const auto family = make_recorded(std::move(table));
    return family ? std::string("accepted") : family.error().message;
  };
  EXPECT_THAT(message(table_of({})), HasSubstr("no recorded measurements in memory"));
  EXPECT_THAT(message(table_of({{problem(1), config(1, 1), 0}})), HasSubstr("time 0 ns"));
  EXPECT_THAT(message(table_of({{problem(1), config(1, 1), -1}})), HasSubstr("row 0"));
  Config foreign = config(1, 1);
  foreign.schema ^= 1U;
  EXPECT_THAT(message(table_of({{problem(1), foreign, 1}})), HasSubstr("another schema"));
  Config short_config = config(1, 1);
  short_config.words = {1};
  EXPECT_THAT(message(table_of({{problem(1), short_config, 1}})), HasSubstr("another schema"));
  RecordedTable wrong_space = table_of({{problem(1), config(1, 1), 1}});
  wrong_space.space = triton_gemm_space();
  EXPECT_THAT(message(std::move(wrong_space)), HasSubstr("declared space"));
}

TEST(TritonSpace, DeclaresWhyTilesWereLeftOut) {
  auto compiled = CompiledSpace::create(triton_gemm_space());
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto why = [&](std::int64_t m, std::int64_t n, std::int64_t k,
                       std::initializer_list<std::int32_t> words) {
    Config wanted;
    wanted.schema = (*compiled)->schema_id();
    wanted.words = words;
    const Problem shape =
        GemmProblem::create({.m = m, .n = n, .k = k, .dtype = DataType::kBf16})->to_problem();
    return (*compiled)->why_not(wanted, shape, h200_fingerprint().hardware).reason();
  };
  EXPECT_EQ(why(1024, 1024, 1024, {64, 64, 64, 8, 4, 4}), "");
  EXPECT_THAT(why(1024, 1024, 1024, {256, 128, 128, 8, 3, 8}), HasSubstr("shared memory"));
  EXPECT_THAT(why(1024, 1024, 1024, {256, 256, 32, 8, 2, 8}), HasSubstr("registers"));
  EXPECT_THAT(why(1024, 1024, 1024, {16, 16, 32, 8, 2, 8}), HasSubstr("warps"));
  EXPECT_THAT(why(16, 1024, 1024, {64, 64, 64, 8, 4, 4}), HasSubstr("height"));
  EXPECT_THAT(why(1024, 32, 1024, {64, 128, 64, 8, 4, 4}), HasSubstr("width"));
  EXPECT_THAT(why(8192, 8192, 8192, {32, 32, 64, 8, 4, 4}), HasSubstr("very large problems"));
}

}  // namespace
}  // namespace foretune
