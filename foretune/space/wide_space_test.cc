// Spaces of many parameters: a knob for each layer of a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kKnobs = 300;

Problem gemm(std::int64_t m) {
  return GemmProblem::create({.m = m, .n = 64, .k = 64}).value().to_problem();
}

SpaceDefinition knobs(std::size_t count) {
  SpaceDefinition definition{.schema = {.name = "knobs", .parameters = {}},
                             .problem_type = kGemmProblem};
  for (std::size_t i = 0; i < count; ++i) {
    definition.schema.parameters.push_back({concat("k", i), {}});
    definition.domains.push_back({0, 1, 2, 3});
  }
  return definition;
}

// Neighbouring knobs differ by at most 2. The last knob is at least 1, and at least 2 for large
// problems. A 0 of the knob before it means 1.
SpaceDefinition constrained(std::size_t count) {
  SpaceDefinition definition = knobs(count);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    definition.constraints.push_back(
        {concat("max(k", i, ", k", i + 1, ") - min(k", i, ", k", i + 1, ") <= 2"),
         concat("layers ", i, " and ", i + 1, " do not fit together")});
  }
  definition.constraints.push_back(
      {concat("k", count - 1, " >= select(m > 100, 2, 1)"), "the last layer is too coarse"});
  definition.canonical = {{concat("k", count - 2), concat("max(k", count - 2, ", 1)")}};
  return definition;
}

std::unique_ptr<ParametricSpace> bound(const SpaceDefinition& definition, std::int64_t m) {
  const auto compiled = CompiledSpace::create(definition);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  auto space = ParametricSpace::bind(*compiled, gemm(m), {});
  EXPECT_TRUE(space) << (space ? "" : space.error().message);
  return *std::move(space);
}

TEST(WideSpace, ItsTextReadsBack) {
  for (const std::size_t count : {kKnobs, std::size_t{500}}) {
    const SpaceDefinition definition = constrained(count);
    const auto read = SpaceDefinition::parse(definition.text());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, definition);
  }
}

TEST(WideSpace, SamplesAreLegalCanonicalAndDifferent) {
  const auto space = bound(constrained(kKnobs), 200);
  EXPECT_EQ(space->enumerable(), nullptr);
  std::set<Config> seen;
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    const Result<Config> config = space->sample(rng);
    ASSERT_TRUE(config) << config.error().message;
    const Support legal = space->why_not(*config);
    EXPECT_TRUE(legal) << legal.reason();
    EXPECT_EQ(space->canonical(*config), *config);
    seen.insert(*config);
  }
  EXPECT_EQ(seen.size(), 20U);
}

TEST(WideSpace, ConstraintsOnTheLastParametersCount) {
  const auto space = bound(constrained(kKnobs), 200);
  const auto other = bound(constrained(kKnobs), 50);
  Config config{.schema = space->schema().id(), .words = Config::Words(kKnobs, 1)};
  EXPECT_TRUE(other->why_not(config));
  EXPECT_THAT(space->why_not(config).reason(), HasSubstr("the last layer is too coarse"));
  config.words[kKnobs - 1] = 2;
  EXPECT_TRUE(space->why_not(config));
  config.words[kKnobs - 1] = 3;
  config.words[kKnobs - 2] = 0;
  EXPECT_THAT(space->why_not(config).reason(), HasSubstr("layers 298 and 299"));
}

TEST(WideSpace, CanonicalRulesReachTheLastParameters) {
  const SpaceDefinition definition = constrained(kKnobs);
  const auto space = bound(definition, 50);
  Config config{.schema = space->schema().id(), .words = Config::Words(kKnobs, 1)};
  const Config canonical = config;
  config.words[kKnobs - 2] = 0;
  EXPECT_TRUE(space->why_not(config));
  EXPECT_EQ(space->canonical(config), canonical);
  EXPECT_EQ(space->canonical(canonical), canonical);
  const auto compiled = CompiledSpace::create(definition);
  EXPECT_FALSE((*compiled)->is_canonical(config.words.view(), gemm(50).fields(), {}));
  EXPECT_TRUE((*compiled)->is_canonical(canonical.words.view(), gemm(50).fields(), {}));
}

TEST(WideSpace, ANeighbourChangesOneKnob) {
  const auto space = bound(constrained(kKnobs), 50);
  const Config here{.schema = space->schema().id(), .words = Config::Words(kKnobs, 1)};
  const std::vector<Config> around = space->neighbours(here);
  // Every knob can go up, and all but the last two can go down.
  EXPECT_EQ(around.size(), 2 * kKnobs - 2);
  for (const Config& config : around) {
    std::size_t changed = 0;
    for (std::size_t i = 0; i < kKnobs; ++i) {
      changed += config.words[i] != here.words[i] ? 1 : 0;
    }
    EXPECT_EQ(changed, 1U);
    EXPECT_TRUE(space->why_not(config));
  }
}

// A space of few configs is listed, however long they are.
TEST(WideSpace, FewCombinationsAreListed) {
  SpaceDefinition definition = knobs(kKnobs);
  for (std::size_t i = 0; i < kKnobs; ++i) {
    definition.domains[i] = i % 60 == 0 ? std::vector<std::int32_t>{0, 1}
                                        : std::vector<std::int32_t>{static_cast<std::int32_t>(i)};
  }
  const auto space = bound(definition, 50);
  ASSERT_NE(space->enumerable(), nullptr);
  EXPECT_EQ(space->count(), 32U);
  EXPECT_EQ(space->unrank(31).words[240], 1);
  EXPECT_EQ(space->unrank(31).words[299], 299);
}

TEST(WideSpace, AsManyParametersAsADataSetHoldsAreTaken) {
  EXPECT_TRUE(CompiledSpace::create(knobs(CompiledSpace::kMaxParameters)));
  const auto more = CompiledSpace::create(knobs(CompiledSpace::kMaxParameters + 1));
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("1 to 4096 parameters, not 4097"));
  const auto read = SpaceDefinition::parse(knobs(CompiledSpace::kMaxParameters + 1).text());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("at most 4096 parameters"));
}

}  // namespace
}  // namespace foretune
