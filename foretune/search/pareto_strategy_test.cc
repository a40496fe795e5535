// Strategies for several targets: what they ask for, when they end, and how good they are.
#include "foretune/search/pareto_strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "foretune/families/null/null.h"
#include "foretune/metrics/pareto.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/strategy.h"
#include "foretune/search/testing/strategies.h"
#include "foretune/space/testing/all_configs.h"

namespace foretune {
namespace {

using testing_support::strategies_of_spaces;

class ParetoStrategyTest : public testing::Test {
 protected:
  ParetoStrategyTest() : family(*make_null({})) {}
  static Problem shape(std::int64_t m, std::int64_t n, std::int64_t k) {
    return GemmProblem::create({.m = m, .n = n, .k = k})->to_problem();
  }
  static std::vector<double> targets_of(const Problem& problem, const Config& config) {
    return {null_time_ns(problem, config), null_pack_ns(problem, config), -null_accuracy(config)};
  }
  static Trial trial_of(const Problem& problem, const Config& config, std::size_t targets) {
    Trial trial{.config = config};
    for (const double target : targets_of(problem, config)) {
      if (trial.targets.size() < targets) {
        trial.targets.push_back(target);
      }
    }
    trial.value = trial.targets[0];
    return trial;
  }
  // The configs that a strategy asks for, at most `budget`.
  std::vector<Config> walk(std::string_view name, const Problem& problem, std::size_t targets,
                           std::size_t budget, std::uint64_t seed,
                           const StrategyOptions& given = {}) const {
    const auto space = *family->space(problem);
    StrategyOptions own = given;
    own.targets = targets;
    const auto strategy = create_strategy(name, problem, *space, own);
    EXPECT_TRUE(strategy) << name;
    std::vector<Config> out;
    Rng rng(seed);
    while (out.size() < budget) {
      const std::vector<Config> next = (*strategy)->ask(1, rng);
      if (next.empty()) {
        break;
      }
      EXPECT_TRUE(space->why_not(next.front()));
      out.push_back(next.front());
      const Trial trial = trial_of(problem, next.front(), targets);
      (*strategy)->tell(std::span(&trial, 1));
    }
    return out;
  }
  std::unique_ptr<Family> family;
};

TEST(SpreadWeights, AddUpToOneAreDistinctAndHoldTheCorners) {
  for (std::size_t targets = 1; targets <= 5; ++targets) {
    for (const std::size_t count : {1U, 2U, 7U, 20U}) {
      const std::vector<std::vector<double>> weights = spread_weights(targets, count);
      EXPECT_GE(weights.size(), targets == 1 ? 1 : count);
      std::set<std::vector<double>> distinct;
      for (const std::vector<double>& each : weights) {
        ASSERT_EQ(each.size(), targets);
        EXPECT_NEAR(std::accumulate(each.begin(), each.end(), 0.0), 1, 1e-12);
        EXPECT_TRUE(std::all_of(each.begin(), each.end(), [](double w) { return w >= 0; }));
        EXPECT_TRUE(distinct.insert(each).second);
      }
      for (std::size_t corner = 0; corner < targets; ++corner) {
        std::vector<double> only(targets, 0.0);
        only[corner] = 1;
        EXPECT_TRUE(distinct.contains(only)) << targets << " " << count;
      }
    }
  }
  EXPECT_EQ(spread_weights(2, 7).size(), 7U);
  EXPECT_EQ(spread_weights(3, 7).size(), 10U);
}

TEST_F(ParetoStrategyTest, EveryStrategyAsksForNothingTwiceAndEndsOnSmallSpaces) {
  const Problem small = shape(1, 1, 16);
  const std::uint64_t count = (*family->space(small))->enumerable()->count();
  ASSERT_LT(count, 40U);
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    if (entry.name == "model") {
      continue;  // wants a model
    }
    for (const std::size_t targets : {2U, 3U}) {
      const std::vector<Config> asked = walk(entry.name, small, targets, 100000, 3);
      EXPECT_EQ(asked.size(), count) << entry.name;
      const std::unordered_set<Config> distinct(asked.begin(), asked.end());
      EXPECT_EQ(distinct.size(), asked.size()) << entry.name;
    }
  }
}

TEST_F(ParetoStrategyTest, TheSameSeedAsksForTheSame) {
  const Problem problem = shape(300, 700, 500);
  for (const char* name : {"random", "stratified", "local", "de", "evolution", "annealing"}) {
    EXPECT_TRUE(walk(name, problem, 2, 80, 5) == walk(name, problem, 2, 80, 5)) << name;
    EXPECT_FALSE(walk(name, problem, 2, 80, 5) == walk(name, problem, 2, 80, 6)) << name;
  }
}

TEST_F(ParetoStrategyTest, ALimitIsThatOfAllCopiesTogether) {
  const Problem problem = shape(300, 700, 500);
  for (const char* name : {"random", "stratified", "local", "de", "evolution", "annealing"}) {
    EXPECT_EQ(walk(name, problem, 2, 100000, 5, {.sample_size = 50}).size(), 50U) << name;
  }
}

TEST_F(ParetoStrategyTest, FailedAndInfeasibleTrialsAreNoObstacle) {
  const Problem problem = shape(300, 700, 500);
  const auto space = *family->space(problem);
  for (const char* name : {"local", "de", "evolution", "annealing"}) {
    const auto strategy = *create_strategy(name, problem, *space, {.targets = 2});
    Rng rng(9);
    std::unordered_set<Config> seen;
    for (int i = 0; i < 120; ++i) {
      const std::vector<Config> next = strategy->ask(1, rng);
      ASSERT_EQ(next.size(), 1U) << name;
      EXPECT_TRUE(seen.insert(next.front()).second) << name;
      Trial trial = trial_of(problem, next.front(), 2);
      if (i % 3 == 0) {
        trial = Trial{.config = next.front()};
      } else if (i % 3 == 1) {
        trial.feasible = false;
        trial.value = infeasible_value(0.5 * i);
      }
      strategy->tell(std::span(&trial, 1));
    }
  }
}

// Measured first by others: never asked for.
TEST_F(ParetoStrategyTest, WhatItIsToldIsNotAskedFor) {
  const Problem small = shape(1, 1, 16);
  const auto space = *family->space(small);
  const auto strategy = *create_strategy("local", small, *space, {.targets = 2});
  const Config known = space->enumerable()->unrank(2);
  const Trial trial = trial_of(small, known, 2);
  strategy->tell(std::span(&trial, 1));
  Rng rng(1);
  std::size_t asked = 0;
  for (std::vector<Config> next = strategy->ask(1, rng); !next.empty();
       next = strategy->ask(1, rng)) {
    EXPECT_FALSE(next.front() == known);
    ++asked;
  }
  EXPECT_EQ(asked + 1, space->enumerable()->count());
}

TEST(InfeasibleValue, IsAboveAllTimesAndGrowsWithTheViolation) {
  EXPECT_GT(infeasible_value(1e-9), 9e29);
  EXPECT_LT(infeasible_value(0.5), infeasible_value(0.6));
  EXPECT_TRUE(std::isfinite(infeasible_value(std::numeric_limits<double>::infinity())));
}

// Share of the whole front's hypervolume, in logarithms of time and in time to pack.
double share_of_front(const Problem& problem, std::span<const Config> all,
                      std::span<const Config> found) {
  const auto points_of = [&](std::span<const Config> configs) {
    std::vector<double> out;
    for (const Config& config : configs) {
      out.push_back(std::log(null_time_ns(problem, config)));
      out.push_back(null_pack_ns(problem, config));
    }
    return out;
  };
  const std::vector<double> whole = points_of(all);
  std::vector<double> reference{-1e300, -1e300};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    reference[i % 2] = std::max(reference[i % 2], whole[i]);
  }
  const std::vector<double> part = points_of(found);
  return hypervolume({part, 2}, reference) / hypervolume({whole, 2}, reference);
}

// With 40 measurements of each of 40 problems, the mean hypervolume of local is 1.029 times that of
// random configs. Annealing has 1.008, and 0.995 on 40 other problems: as much as random. De
// (0.979) and evolution (0.993) have less, so nothing is asked of them here.
TEST_F(ParetoStrategyTest, LocalBeatsRandomConfigsWithAnEqualBudgetAndAnnealingEqualsThem) {
  constexpr std::size_t kBudget = 40;
  constexpr int kProblems = 40;
  Rng rng(17);
  std::vector<Problem> problems;
  for (int i = 0; i < kProblems; ++i) {
    // One after another: the order in which arguments are computed is the compiler's.
    const std::int64_t k = rng.between(100, 4000);
    const std::int64_t n = rng.between(100, 4000);
    problems.push_back(shape(rng.between(100, 4000), n, k));
  }
  const auto mean_share = [&](std::string_view name) {
    double sum = 0;
    for (const Problem& problem : problems) {
      const auto space = *family->space(problem);
      const std::vector<Config> all = all_configs(*space->enumerable());
      sum += share_of_front(problem, all, walk(name, problem, 2, kBudget, problem.hash()));
    }
    return sum / kProblems;
  };
  const double random = mean_share("random");
  for (const auto& [name, least] : {std::pair("local", 1.0), std::pair("annealing", 0.98)}) {
    const double ratio = mean_share(name) / random;
    RecordProperty(name, std::to_string(ratio));
    EXPECT_GT(ratio, least) << name;
  }
}

}  // namespace
}  // namespace foretune
