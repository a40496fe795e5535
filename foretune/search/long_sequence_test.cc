// Strategies on configs of hundreds of words: the networks of the family `null`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/null/null_layers.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

Problem network(std::int64_t size) {
  return GemmProblem::create({.m = 64, .n = size, .k = 64})->to_problem();
}

struct Outcome {
  std::vector<Config> asked;
  double best = std::numeric_limits<double>::infinity();
};

Outcome search(std::string_view name, const Problem& problem, const Space& space,
               std::size_t budget, bool walks = false) {
  Outcome out;
  auto strategy = walks ? create_walk(name, space, {}) : create_strategy(name, problem, space, {});
  EXPECT_TRUE(strategy) << name << (strategy ? "" : strategy.error().message);
  Rng rng(11);
  while (strategy && out.asked.size() < budget) {
    const std::vector<Config> next = (*strategy)->ask(1, rng);
    if (next.empty()) {
      break;
    }
    const double value = null_layers_time_ns(problem, next.front());
    out.best = std::min(out.best, value);
    out.asked.push_back(next.front());
    const Trial trial{.config = next.front(), .value = value};
    (*strategy)->tell(std::span(&trial, 1));
  }
  return out;
}

TEST(LongSequences, EveryStrategyAsksForLegalConfigsNoneTwice) {
  const Problem problem = network(512);
  const NullLayersSpace space(problem);
  ASSERT_EQ(space.layers(), 221U);
  std::vector<std::string> names;
  for (const std::string& name : strategy_names()) {
    // These need a model.
    const bool is_too_large = name == "exhaustive";
    if (name != "model" && name != "guided" && name != "policy" && !is_too_large) {
      names.push_back(name);
    }
  }
  EXPECT_GT(names.size(), 9U);
  const auto exhaustive = create_strategy("exhaustive", problem, space, {});
  ASSERT_FALSE(exhaustive);
  EXPECT_THAT(exhaustive.error().message,
              testing::HasSubstr("null-layers is too large to be listed"));
  for (const std::string& name : names) {
    const Outcome out = search(name, problem, space, 150);
    EXPECT_EQ(out.asked.size(), 150U) << name;
    const std::unordered_set<Config> distinct(out.asked.begin(), out.asked.end());
    EXPECT_EQ(distinct.size(), out.asked.size()) << name;
    for (const Config& config : out.asked) {
      const Support legal = space.why_not(config);
      ASSERT_TRUE(legal) << name << ": " << legal.reason();
    }
  }
}

TEST(LongSequences, StrategiesThatLearnBeatRandomOnes) {
  const Problem problem = network(100);
  const NullLayersSpace space(problem);
  const double random = search("random", problem, space, 400).best;
  const double by_default = null_layers_time_ns(problem, space.start());
  EXPECT_LT(random, 0.95 * by_default);
  for (const char* name : {"local", "evolution"}) {
    EXPECT_LT(search(name, problem, space, 400).best, random) << name;
  }
  EXPECT_LT(search("annealing", problem, space, 400).best, 0.9 * by_default);
  for (const char* name : {"evolution", "annealing"}) {
    EXPECT_LT(search(name, problem, space, 400, true).best, 0.95 * by_default) << name;
  }
}

// A walk of the usual ten actions would leave all layers but ten as they are.
TEST(LongSequences, WalksReachEveryLayer) {
  const Problem problem = network(512);
  const NullLayersSpace space(problem);
  for (const char* name : {"random", "evolution", "annealing"}) {
    std::vector<bool> changed(space.layers(), false);
    std::size_t most = 0;
    for (const Config& config : search(name, problem, space, 200, true).asked) {
      std::size_t here = 0;
      for (std::size_t i = 0; i < space.layers(); ++i) {
        here += config.words[i] != 0 ? 1 : 0;
        changed[i] = changed[i] || config.words[i] != 0;
      }
      most = std::max(most, here);
    }
    EXPECT_LT(std::count(changed.begin(), changed.end(), false), 23) << name;
    EXPECT_GT(most, space.layers() / 3) << name;
  }
}

TEST(LongSequences, ASmallSpaceIsSearchedWholly) {
  const Problem problem = GemmProblem::create({.m = 1, .n = 1, .k = 1})->to_problem();
  const NullLayersSpace space(problem);
  const Outcome out = search("exhaustive", problem, space, 100000);
  EXPECT_EQ(out.asked.size(), space.count());
  EXPECT_EQ(search("random", problem, space, 100000).best, out.best);
}

}  // namespace
}  // namespace foretune
