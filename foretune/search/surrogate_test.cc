#include "foretune/search/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <unordered_set>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/strategy.h"
#include "foretune/search/testing/strategies.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using testing_support::strategies_of_spaces;

// ln(time) is a bowl around 9 in every parameter.
class BowlPool final : public PreparedPool {
 public:
  explicit BowlPool(ConfigWords configs) : configs_(configs) {}
  std::size_t size() const override { return configs_.size(); }
  std::size_t workspace_bytes() const override { return 0; }
  void score(const Problem&, std::span<std::byte>, std::span<double> scores,
             std::span<double>) const noexcept override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      scores[i] = 0;
      for (const std::int32_t word : configs_.view()[i]) {
        scores[i] += 0.01 * std::pow(word - 9.0, 2);
      }
    }
  }

 private:
  ConfigList configs_;
};

class BowlScorer final : public Scorer {
 public:
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware&) const override {
    if (refuses) {
      return fail(ErrorCode::kMismatch, "made for other configs");
    }
    return std::unique_ptr<PreparedPool>(std::make_unique<BowlPool>(configs));
  }
  bool refuses = false;
};

Problem small_problem() { return GemmProblem::create({.m = 64, .n = 64, .k = 64})->to_problem(); }

std::unique_ptr<ParametricSpace> bowl_space(const std::string& constraint = "p0 + p1 >= 4") {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "bowl";
  for (const char* name : {"p0", "p1", "p2", "p3"}) {
    definition.schema.parameters.push_back({name, {}});
    definition.domains.push_back({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  }
  definition.constraints = {{constraint, "not this"}};
  const auto compiled = CompiledSpace::create(definition);
  EXPECT_TRUE(compiled.has_value());
  return *ParametricSpace::bind(*compiled, small_problem(), {});
}

SurrogateResult found(const Space& space, const SurrogateOptions& options) {
  auto result = surrogate_search(small_problem(), space, BowlScorer(), options);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? *std::move(result) : SurrogateResult{};
}

TEST(Surrogate, EveryStrategyKeepsToTheBudgetAndYieldsDistinctLegalConfigs) {
  const auto space = bowl_space();
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    const SurrogateResult result =
        found(*space, {.strategy = std::string(entry.name), .budget = 100, .top = 20, .batch = 7});
    EXPECT_EQ(result.scored, 100U) << entry.name;
    ASSERT_EQ(result.ranked.size(), 20U) << entry.name;
    std::unordered_set<Config> distinct;
    for (const ScoredConfig& scored : result.ranked) {
      EXPECT_TRUE(space->why_not(scored.config)) << entry.name;
      EXPECT_EQ(space->canonical(scored.config), scored.config);
      distinct.insert(scored.config);
    }
    EXPECT_EQ(distinct.size(), 20U);
    for (std::size_t i = 1; i < 20; ++i) {
      EXPECT_LE(result.ranked[i - 1].score, result.ranked[i].score);
    }
  }
}

// 8^12 configs, of which a tenth or so is legal and stands for itself.
std::unique_ptr<ParametricSpace> large_space() {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "large";
  for (int i = 0; i < 12; ++i) {
    definition.schema.parameters.push_back({concat("p", i), {}});
    definition.domains.push_back({4, 5, 6, 7, 8, 9, 10, 11});
  }
  definition.constraints = {{"p0 + p1 + p2 <= 27", "too much"}, {"p3 % 2 == p4 % 2", "not even"}};
  definition.canonical = {{"p11", "min(p11, p10)"}};
  const auto compiled = CompiledSpace::create(definition);
  EXPECT_TRUE(compiled.has_value());
  return *ParametricSpace::bind(*compiled, small_problem(), {});
}

TEST(Surrogate, SearchesSpacesThatCannotBeListed) {
  const auto space = large_space();
  ASSERT_EQ(space->enumerable(), nullptr);
  std::map<std::string, double> first;
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    SCOPED_TRACE(entry.name);
    const SurrogateOptions options{
        .strategy = std::string(entry.name), .budget = 400, .top = 400, .batch = 7};
    if (entry.name == "exhaustive") {
      const auto refused = surrogate_search(small_problem(), *space, BowlScorer(), options);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
      EXPECT_EQ(refused.error().message,
                "the space large is too large to be listed, so it cannot be searched exhaustively; "
                "the other strategies draw from it");
      continue;
    }
    const SurrogateResult result = found(*space, options);
    EXPECT_EQ(result.scored, 400U);
    ASSERT_EQ(result.ranked.size(), 400U);
    EXPECT_FALSE(result.legal_configs.has_value());
    EXPECT_FALSE(result.best_score.has_value());
    std::unordered_set<Config> distinct;
    for (const ScoredConfig& scored : result.ranked) {
      EXPECT_TRUE(space->why_not(scored.config));
      EXPECT_EQ(space->canonical(scored.config), scored.config);
      distinct.insert(scored.config);
    }
    EXPECT_EQ(distinct.size(), 400U);
    EXPECT_EQ(found(*space, options).ranked.back().config, result.ranked.back().config);
    first[std::string(entry.name)] = result.ranked.front().score;
  }
  for (const char* learning : {"local", "de", "evolution", "annealing"}) {
    EXPECT_LT(first.at(learning), first.at("random")) << learning;
  }
}

TEST(Surrogate, SameSeedSameResultOtherSeedAnother) {
  const auto space = bowl_space();
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    const auto configs = [&](std::uint64_t seed) {
      std::vector<Config> out;
      for (const ScoredConfig& scored :
           found(*space, {.strategy = std::string(entry.name), .budget = 40, .seed = seed})
               .ranked) {
        out.push_back(scored.config);
      }
      return out;
    };
    EXPECT_EQ(configs(1), configs(1)) << entry.name;
    if (entry.name == "random") {
      EXPECT_NE(configs(1), configs(2));
    }
  }
}

TEST(Surrogate, EfficiencyIsAgainstScoringEverything) {
  const auto space = bowl_space();
  const SurrogateResult all =
      found(*space, {.strategy = "exhaustive", .budget = 1000000, .top = 1});
  EXPECT_EQ(all.scored, *all.legal_configs);
  EXPECT_EQ(all.efficiency, 1);
  EXPECT_EQ(all.better, 0U);
  EXPECT_EQ(all.ranked[0].config.words, (Config::Words{9, 9, 9, 9}));

  const SurrogateResult few = found(*space, {.strategy = "random", .budget = 5, .top = 1});
  std::uint64_t better = 0;
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < space->count(); ++i) {
    const Config config = space->unrank(i);
    double score = 0;
    for (const std::int32_t word : config.words) {
      score += 0.01 * std::pow(word - 9.0, 2);
    }
    better += score < few.ranked[0].score ? 1U : 0U;
    best = std::min(best, score);
  }
  EXPECT_EQ(few.better, better);
  EXPECT_DOUBLE_EQ(few.efficiency, std::exp(best - few.ranked[0].score));

  const SurrogateResult unknown =
      found(*space, {.strategy = "random", .budget = 5, .exhaustive_limit = 0});
  EXPECT_FALSE(unknown.best_score.has_value());
  EXPECT_EQ(*unknown.legal_configs, space->count());
}

TEST(Surrogate, LearningStrategiesComeNearerThanRandom) {
  const auto space = bowl_space();
  const auto mean_efficiency = [&](const std::string& strategy) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      sum +=
          found(*space, {.strategy = strategy, .budget = 200, .top = 1, .seed = seed}).efficiency;
    }
    return sum / 10;
  };
  const double random = mean_efficiency("random");
  for (const char* strategy : {"local", "de", "evolution", "annealing"}) {
    EXPECT_GT(mean_efficiency(strategy), random) << strategy;
  }
}

TEST(Surrogate, SmallSpacesAreSearchedWhole) {
  const auto single = bowl_space("p0 + p1 + p2 + p3 <= 4");
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    const SurrogateResult result = found(*single, {.strategy = std::string(entry.name)});
    EXPECT_EQ(result.scored, 1U) << entry.name;
    EXPECT_EQ(result.efficiency, 1);
  }
}

TEST(Surrogate, WhatMakesNoSenseIsExplained) {
  const auto space = bowl_space();
  const auto code = [&](const Space& where, const SurrogateOptions& options,
                        const BowlScorer& scorer = {}) {
    const auto result = surrogate_search(small_problem(), where, scorer, options);
    return result ? ErrorCode::kInternal : result.error().code;
  };
  EXPECT_EQ(code(*space, {.budget = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(*space, {.top = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(*space, {.strategy = "evolutoin"}), ErrorCode::kNotFound);
  EXPECT_EQ(code(*bowl_space("p0 > 100"), {.strategy = "random"}), ErrorCode::kNotFound);
  EXPECT_EQ(code(*bowl_space("p0 > 100"), {.strategy = "de"}), ErrorCode::kNotFound);
  BowlScorer refusing;
  refusing.refuses = true;
  EXPECT_EQ(code(*space, {}, refusing), ErrorCode::kMismatch);
}

}  // namespace
}  // namespace foretune
