// A strategy asks for configs to measure and is told the results, in batches, by value. It keeps no
// clock, no globals, no hidden randomness, so a search on recorded measurements repeats exactly.
//
//   FORETUNE_TRY(auto strategy, create_strategy("stratified", problem, space, {.sample_size =
//   64})); while (true) {
//     const std::vector<Config> batch = strategy->ask(8, rng);
//     if (batch.empty()) break;
//     strategy->tell(measure_all(batch));
//   }
//
// Problem, space and scorer must outlive the strategy.
// Thread safety: one strategy belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/base/small_vector.h"
#include "foretune/models/infer/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/space.h"

namespace foretune {

// What a strategy learns of a finished measurement. No value: it failed. A censored value is a
// lower bound.
struct Trial {
  Config config;
  // To be minimised: the target of the objective; of a trial that misses a bound a value above all
  // others (infeasible_value()).
  std::optional<double> value;
  bool censored = false;
  bool feasible = true;
  // The targets of the objective, smaller is better; empty where there is only `value`.
  SmallVector<double, 4> targets = {};
};

// The value of a trial that misses its bounds by so much (Judgement::violation): worse than any
// feasible one, and the worse the more it misses (Deb 2000, "An efficient constraint handling
// method for genetic algorithms").
double infeasible_value(double violation);

class Strategy {
 public:
  virtual ~Strategy() = default;
  // At most `count` legal configs not asked for before; empty when there is nothing left to try.
  virtual std::vector<Config> ask(std::size_t count, Rng& rng) = 0;
  virtual void tell(std::span<const Trial> finished) = 0;
};

// Learns from finished trials which configs are fast: what `guided` is guided by.
class ConfigLearner {
 public:
  virtual ~ConfigLearner() = default;
  // Values are of the metric to minimise, those that failed left out; all that are known, every
  // time. Errors: what the learner cannot learn from, and then it stays as it was.
  virtual Status learn(std::span<const Trial> trials) = 0;
  // One score per config, lower is better. Empty when it has not learnt anything yet.
  virtual std::vector<double> score(std::span<const Config> configs) = 0;
};

struct StrategyOptions {
  // All but `exhaustive`: how many in all; 0 is no limit. `annealing` cools down over as many.
  std::size_t sample_size = 0;
  const Scorer* scorer = nullptr;  // `model`: tries the best-scored first
  Hardware hardware;
  double exploration = 0.1;  // `model`, `local`, `guided`: share of random configs
  // For sequential spaces, the longest list of actions; 0 is SequentialSpace::usual_steps().
  std::size_t max_steps = 0;
  std::size_t lookahead = 1;         // `greedy`: changes
  std::size_t width = 4;             // `beam-bfs`, `beam-dfs`, `guided` (times 16)
  ConfigLearner* learner = nullptr;  // `guided`
  // More than 1: trials have so many targets to trade off, and the strategy is split into several
  // that weigh them differently (pareto_strategy.h).
  std::size_t targets = 1;
  // So many strategies learn from the same trials, and each begins with its share of the random
  // configs that one alone begins with.
  std::size_t copies = 1;

  // The share of one copy, at least one.
  [[nodiscard]] std::size_t share_of(std::size_t count) const {
    return (count + copies - 1) / copies;
  }
};

struct StrategyEntry {
  std::string_view name;  // stays as long as the process
  std::string_view description;
  Result<std::unique_ptr<Strategy>> (*create)(const Problem& problem, const Space& space,
                                              const StrategyOptions& options);
  // True for one that needs a space which is built step by step (Space::sequential()).
  bool steps_only = false;
};

// All strategies, those of this build first (strategies.inc). They propose legal configs in
// canonical form, none twice.
std::span<const StrategyEntry* const> strategies();
// Adds a strategy for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_strategy(StrategyEntry entry);
// Names of all, in their order.
std::vector<std::string> strategy_names();
// Errors: kNotFound for an unknown name, kUnsupported when the strategy cannot walk this space,
// kInvalidArgument when an option it needs is missing.
Result<std::unique_ptr<Strategy>> create_strategy(std::string_view name, const Problem& problem,
                                                  const Space& space,
                                                  const StrategyOptions& options);
// The same for a space that is built step by step, which takes no problem: random, exhaustive,
// evolution, annealing and the sequential ones. Errors: as above.
Result<std::unique_ptr<Strategy>> create_walk(std::string_view name, const Space& space,
                                              const StrategyOptions& options);

}  // namespace foretune
