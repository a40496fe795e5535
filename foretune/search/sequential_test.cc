// The strategies for spaces that are built step by step, against slow and obvious versions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/strategy.h"
#include "foretune/search/walk.h"

namespace foretune {
namespace {

Problem gemm_problem() { return GemmProblem::create({.m = 300, .n = 700, .k = 500})->to_problem(); }

constexpr std::int32_t kDials = 4;
constexpr std::int32_t kPositions = 5;

// Dials in a row, each from 0 to 4, and a cursor at one of them: left, right, up, down. Where the
// cursor is has no meaning.
class DialSpace final : public Space, public SequentialSpace {
 public:
  DialSpace() {
    schema_.name = "dials";
    schema_.kind = SchemaKind::kSequence;
  }
  const ConfigSchema& schema() const override { return schema_; }
  Support why_not(const Config& config) const override {
    return config.words.size() == kDials + 1 ? Support::yes() : Support::no("not that many dials");
  }
  Result<Config> sample(Rng& rng) const override {
    Config config = start();
    for (std::int32_t i = 0; i < kDials; ++i) {
      config.words[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(rng.below(kPositions));
    }
    return config;
  }
  std::vector<Config> neighbours(const Config& /*config*/) const override { return {}; }
  Config canonical(const Config& config) const override {
    Config out = config;
    out.words[kDials] = 0;
    return out;
  }
  const SequentialSpace* sequential() const override { return this; }

  Config start() const override {
    return {schema_.id(), Config::Words(static_cast<std::size_t>(kDials + 1))};
  }
  std::size_t action_count() const override { return 4; }
  std::vector<bool> legal_actions(const Config& state) const override {
    const std::int32_t cursor = state.words[kDials];
    const std::int32_t dial = state.words[static_cast<std::size_t>(cursor)];
    return {cursor > 0, cursor < kDials - 1, dial < kPositions - 1, dial > 0};
  }
  Result<Config> apply(const Config& state, std::size_t action) const override {
    if (!legal_actions(state)[action]) {
      return fail(ErrorCode::kUnsupported, "not there");
    }
    Config next = state;
    std::int32_t& cursor = next.words[kDials];
    if (action < 2) {
      cursor += action == 0 ? -1 : 1;
    } else {
      next.words[static_cast<std::size_t>(cursor)] += action == 2 ? 1 : -1;
    }
    return next;
  }
  std::string action_text(std::size_t action) const override { return concat("turn ", action); }

 private:
  ConfigSchema schema_;
};

using Formula = double (*)(const Config& config);

// The lowest is where all dials are at 2 but the last, which is at 4.
double bowl(const Config& config) {
  double sum = 1;
  for (std::size_t i = 0; i < kDials; ++i) {
    const double off = config.words[i] - (i + 1 == kDials ? 4.0 : 2.0);
    sum += static_cast<double>(i + 1) * off * off;
  }
  return sum;
}

// A step from the start is a loss; two of the same dial are a gain.
double valley(const Config& config) {
  const std::int32_t first = config.words[0];
  return first == 0 ? 10 : first == 1 ? 20 : 5.0 + first + config.words[1];
}

struct Told {
  std::vector<Config> asked;
  double best = std::numeric_limits<double>::infinity();
  Config best_config;
};

Told search(std::string_view name, const Space& space, Formula formula, StrategyOptions options,
            std::uint64_t seed = 1, std::size_t batch = 4) {
  auto strategy = create_strategy(name, gemm_problem(), space, options);
  EXPECT_TRUE(strategy) << name;
  Rng rng(seed);
  Told told;
  while (true) {
    const std::vector<Config> configs = (*strategy)->ask(batch, rng);
    if (configs.empty()) {
      return told;
    }
    std::vector<Trial> trials;
    for (const Config& config : configs) {
      told.asked.push_back(config);
      trials.push_back({.config = config, .value = formula(config)});
      if (formula(config) < told.best) {
        told.best = formula(config);
        told.best_config = config;
      }
    }
    (*strategy)->tell(trials);
  }
}

// How many steps each meaning takes at least.
std::map<Config, std::size_t> reachable(const DialSpace& space, std::size_t max_steps) {
  std::map<Config, std::size_t> states{{space.start(), 0}};
  std::map<Config, std::size_t> meanings{{space.start(), 0}};
  for (std::size_t steps = 0; steps < max_steps; ++steps) {
    const std::map<Config, std::size_t> level = states;
    for (const auto& [state, taken] : level) {
      for (std::size_t action = 0; action < space.action_count(); ++action) {
        if (const Result<Config> next = space.apply(state, action)) {
          states.emplace(*next, steps + 1);
          meanings.emplace(space.canonical(*next), steps + 1);
        }
      }
    }
  }
  return meanings;
}

TEST(Exhaustive, VisitsWhatSoManyActionsReachAndNothingElse) {
  const DialSpace space;
  for (const std::size_t max_steps : {1U, 3U, 7U}) {
    const std::map<Config, std::size_t> expected = reachable(space, max_steps);
    const Told told = search("exhaustive", space, bowl, {.max_steps = max_steps});
    EXPECT_EQ(told.asked.size(), expected.size());
    std::size_t steps = 0;
    for (const Config& config : told.asked) {
      ASSERT_TRUE(expected.contains(config));
      EXPECT_GE(expected.at(config), steps);  // in the order of steps
      steps = expected.at(config);
    }
  }
}

TEST(BeamBfs, IsExhaustiveWhenWideEnough) {
  const DialSpace space;
  const Told told = search("beam-bfs", space, bowl, {.max_steps = 7, .width = 100000});
  const Told deep = search("beam-dfs", space, bowl, {.max_steps = 7, .width = 100000});
  // By changes and not by steps, so a few that only other ways reach in time are left out.
  const std::size_t all = reachable(space, 7).size();
  EXPECT_LE(told.asked.size(), all);
  EXPECT_GT(told.asked.size(), all * 9 / 10);
  EXPECT_EQ(deep.asked.size(), all);
}

TEST(BeamBfs, KeepsTheBestWhateverTheirOrderAmongActions) {
  const DialSpace space;
  const Told told = search("beam-bfs", space, bowl, {.max_steps = 60, .width = 1});
  EXPECT_EQ(told.best, 1);
  // Turning the last dial gains most, although it is reached last.
  EXPECT_EQ(told.asked[0], space.start());
  const Told wide = search("beam-bfs", space, bowl, {.max_steps = 60, .width = 3});
  EXPECT_GT(wide.asked.size(), told.asked.size());
}

TEST(Greedy, GoesToTheBestAndStopsInAValley) {
  const DialSpace space;
  // Moves of the cursor between two changes are no obstacle.
  EXPECT_EQ(search("greedy", space, bowl, {.max_steps = 60}).best, 1);
  const Told stuck = search("greedy", space, valley, {.max_steps = 20});
  EXPECT_EQ(stuck.best, 10);
  EXPECT_EQ(stuck.asked.size(), 5U);  // the start, and each dial turned once
  const Told across = search("greedy", space, valley, {.max_steps = 20, .lookahead = 2});
  EXPECT_EQ(across.best, 7);
}

TEST(Greedy, StepsLimitHowFarItGoes) {
  const DialSpace space;
  const auto expected = reachable(space, 6);
  for (const Config& config : search("greedy", space, bowl, {.max_steps = 6}).asked) {
    EXPECT_TRUE(expected.contains(config));
  }
}

// Remembers values and scores by the nearest one.
class NearestLearner final : public ConfigLearner {
 public:
  Status learn(std::span<const Trial> trials) override {
    trials_.assign(trials.begin(), trials.end());
    return {};
  }
  std::vector<double> score(std::span<const Config> configs) override {
    std::vector<double> scores;
    for (const Config& config : configs) {
      double weights = 0;
      double sum = 0;
      for (const Trial& trial : trials_) {
        double distance = 0.1;
        for (std::size_t i = 0; i < kDials; ++i) {
          distance += std::abs(config.words[i] - trial.config.words[i]);
        }
        const double weight = 1 / (distance * distance * distance);
        weights += weight;
        sum += weight * *trial.value;
      }
      scores.push_back(sum / weights);
    }
    return trials_.empty() ? std::vector<double>{} : scores;
  }

 private:
  std::vector<Trial> trials_;
};

TEST(Learning, FindsTheOptimumSoonerThanRandomWalks) {
  const DialSpace space;
  const auto mean_needed = [&](std::string_view name) {
    double total = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      NearestLearner learner;
      const Told told = search(name, space, bowl,
                               {.sample_size = 300, .max_steps = 20, .learner = &learner}, seed);
      EXPECT_EQ(std::set<Config>(told.asked.begin(), told.asked.end()).size(), told.asked.size());
      const auto found = std::find(told.asked.begin(), told.asked.end(), told.best_config);
      total += told.best > 1 ? 300.0 : static_cast<double>(found - told.asked.begin());
    }
    return total / 8;
  };
  const double random = mean_needed("random");
  for (const std::string_view name : {"mcts", "evolution", "annealing", "guided"}) {
    EXPECT_LT(mean_needed(name), 0.8 * random) << name;
  }
}

TEST(Walks, RepeatWithTheSeedAndNotWithAnother) {
  const DialSpace space;
  for (const std::string_view name : {"mcts", "evolution", "annealing", "guided"}) {
    const auto asked = [&](std::uint64_t seed) {
      NearestLearner learner;
      return search(name, space, bowl, {.sample_size = 60, .learner = &learner}, seed).asked;
    };
    EXPECT_EQ(asked(1), asked(1)) << name;
    EXPECT_NE(asked(1), asked(2)) << name;
    EXPECT_EQ(asked(1).size(), 60U) << name;
  }
}

TEST(Walks, FailuresAreNoValues) {
  const DialSpace space;
  for (const std::string_view name :
       {"greedy", "beam-bfs", "beam-dfs", "mcts", "evolution", "annealing", "guided"}) {
    NearestLearner learner;
    auto strategy =
        create_strategy(name, gemm_problem(), space, {.sample_size = 100, .learner = &learner});
    ASSERT_TRUE(strategy);
    Rng rng(3);
    for (auto configs = (*strategy)->ask(3, rng); !configs.empty();
         configs = (*strategy)->ask(3, rng)) {
      for (const Config& config : configs) {
        const Trial trial{.config = config, .value = std::nullopt};
        (*strategy)->tell({&trial, 1});
      }
    }
  }
}

}  // namespace
}  // namespace foretune
