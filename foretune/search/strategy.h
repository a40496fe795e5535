// A strategy proposes configs to measure and receives the results, in batches, by value. It has no
// clock, no globals and no hidden randomness, so a search on recorded measurements repeats exactly.
//
//   FORETUNE_TRY(auto strategy, create_strategy("stratified", problem, space, {}));
//   while (true) {
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
#include "foretune/model/proposer.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/space.h"

namespace foretune {

// A finished measurement as a strategy receives it. Without a value it failed. A censored value is
// a lower bound.
struct Trial {
  Config config;
  // The target of the objective, to be minimised. A trial that violates a bound has a value above
  // all others (infeasible_value()).
  std::optional<double> value;
  bool censored = false;
  bool feasible = true;
  // The targets of the objective, smaller is better; empty where there is only `value`.
  SmallVector<double, 4> targets = {};
};

// Returns the value of a trial that violates its bounds by this much (Judgement::violation): worse
// than any feasible one, and increasing with the violation (Deb 2000, "An efficient constraint
// handling method for genetic algorithms").
double infeasible_value(double violation);

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Returns at most `count` legal configs that it has not proposed before; empty when nothing is
  // left to try.
  virtual std::vector<Config> ask(std::size_t count, Rng& rng) = 0;
  virtual void tell(std::span<const Trial> finished) = 0;
};

// Learns from finished trials which configs are fast. The strategy `guided` follows it.
class ConfigLearner {
 public:
  virtual ~ConfigLearner() = default;
  // Learns from all known trials, every time; failed ones are left out. Values are of the metric to
  // minimise. Errors: trials that it cannot learn from; then it stays unchanged.
  virtual Status learn(std::span<const Trial> trials) = 0;
  // Returns one score per config, lower is better; empty when it has not learned anything yet.
  virtual std::vector<double> score(std::span<const Config> configs) = 0;
};

struct StrategyOptions {
  // All but `exhaustive`: total number of configs; 0 is no limit. `annealing` cools down over this
  // number.
  std::size_t sample_size = 0;
  const Scorer* scorer = nullptr;      // `model`: tries the best-scored first
  ConfigProposer* proposer = nullptr;  // `policy`: where its configs come from
  Hardware hardware;
  double exploration = 0.1;  // `model`, `local`, `guided`: share of random configs
  // For sequential spaces: the longest list of actions; 0 is SequentialSpace::usual_steps().
  std::size_t max_steps = 0;
  std::size_t lookahead = 1;         // `greedy`: changes
  std::size_t width = 4;             // `beam-bfs`, `beam-dfs`, `guided` (times 16)
  ConfigLearner* learner = nullptr;  // `guided`
  // More than 1: trials have this many targets to trade off, and the strategy is split into several
  // that weigh them differently (pareto_strategy.h).
  std::size_t targets = 1;
  // Number of strategies that learn from the same trials. Each begins with its share of the random
  // configs that a single strategy begins with.
  std::size_t copies = 1;

  // Returns the share of one copy, at least 1.
  [[nodiscard]] std::size_t share_of(std::size_t count) const {
    return (count + copies - 1) / copies;
  }
};

struct StrategyEntry {
  std::string_view name;  // stays as long as the process
  std::string_view description;
  Result<std::unique_ptr<Strategy>> (*create)(const Problem& problem, const Space& space,
                                              const StrategyOptions& options);
  // True for a strategy that needs a space built step by step (Space::sequential()).
  bool steps_only = false;
};
// Errors: kUnsupported for a space that is not built step by step, naming the strategy.
Status check_walkable(std::string_view strategy, const Space& space);

// Returns all strategies, those of this build first (strategies.inc). They propose legal configs in
// canonical form, none twice.
std::span<const StrategyEntry* const> strategies();
// Adds a strategy for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_strategy(StrategyEntry entry);
// Returns the names of all strategies, in their order.
std::vector<std::string> strategy_names();
// Errors: kNotFound for an unknown name, kUnsupported when the strategy cannot walk this space,
// kInvalidArgument when a required option is missing.
Result<std::unique_ptr<Strategy>> create_strategy(std::string_view name, const Problem& problem,
                                                  const Space& space,
                                                  const StrategyOptions& options);
// Creates a strategy for a space that is built step by step, which needs no problem: random,
// exhaustive, evolution, annealing and the sequential ones. Errors: as above.
Result<std::unique_ptr<Strategy>> create_walk(std::string_view name, const Space& space,
                                              const StrategyOptions& options);

}  // namespace foretune
