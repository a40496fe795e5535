// Strategies that step from a config to one of its neighbours: aging evolution and annealing.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

constexpr std::size_t kChains = 4;
// A neighbour of a neighbour is tried when all nearer ones are known, so many steps at most.
constexpr int kLongestWalk = 4;

// Walks from neighbour to neighbour until a config comes that was not asked for.
template <class IsKnown>
std::optional<Config> unknown_neighbour(const Space& space, Config from, const IsKnown& is_known,
                                        Rng& rng) {
  for (int step = 0; step < kLongestWalk; ++step) {
    std::vector<Config> neighbours = space.neighbours(from);
    if (neighbours.empty()) {
      return std::nullopt;
    }
    rng.shuffle(std::span(neighbours));
    for (const Config& neighbour : neighbours) {
      Config config = space.canonical(neighbour);
      if (!is_known(config)) {
        return config;
      }
    }
    from = neighbours.front();
  }
  return std::nullopt;
}

class EvolutionStrategy final : public PickingStrategy {
 public:
  EvolutionStrategy(const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size),
        starts_(options.share_of(AgingPopulation<Config>::kSize)),
        order_(space) {}

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      if (const double value = value_of(trial); std::isfinite(value)) {
        population_.join(value, trial.config);
      }
    }
  }

 private:
  std::optional<Config> propose(Rng& rng) override {
    if (asked_count() >= starts_ && !population_.empty()) {
      const auto is_known = [this](const Config& config) { return asked(config); };
      if (auto child = unknown_neighbour(space(), population_.draw(rng), is_known, rng)) {
        return child;
      }
    }
    return order_.next(rng);
  }

  std::size_t starts_;
  RandomOrder order_;
  AgingPopulation<Config> population_;
};

// Several chains in turn.
class AnnealingStrategy final : public PickingStrategy {
 public:
  AnnealingStrategy(const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size),
        copies_(options.copies),
        order_(space),
        cooling_(options.sample_size),
        chains_(kChains) {}

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      const auto found = pending_.find(trial.config);
      const std::size_t chain = found == pending_.end() ? next_ % kChains : found->second;
      if (found != pending_.end()) {
        pending_.erase(found);
      }
      offer(chains_[chain], trial.config, value_of(trial));
    }
  }

 private:
  struct Chain {
    std::optional<Config> here;
    double value = std::numeric_limits<double>::infinity();
    double dice = 1;  // drawn with the proposal, for tell() has no random numbers
  };

  std::optional<Config> propose(Rng& rng) override {
    const std::size_t index = next_++ % kChains;
    Chain& chain = chains_[index];
    chain.dice = rng.uniform();
    std::optional<Config> config;
    if (chain.here) {
      config = unknown_neighbour(
          space(), *chain.here, [this](const Config& other) { return asked(other); }, rng);
    }
    if (!config) {
      config = order_.next(rng);
    }
    if (config) {
      pending_.insert_or_assign(*config, index);
    }
    return config;
  }

  void offer(Chain& chain, const Config& config, double value) {
    if (!std::isfinite(value)) {
      return;
    }
    if (!chain.here || cooling_.accepts(chain.value, value, copies_ * asked_count(), chain.dice)) {
      chain.here = config;
      chain.value = value;
    }
  }

  std::size_t copies_;
  RandomOrder order_;
  Cooling cooling_;
  std::vector<Chain> chains_;
  std::size_t next_ = 0;
  std::unordered_map<Config, std::size_t> pending_;
};

StrategyResult make_evolution(const Problem& /*problem*/, const Space& space,
                              const StrategyOptions& options) {
  if (is_walked(space)) {
    return create_walk("evolution", space, options);
  }
  return std::unique_ptr<Strategy>(std::make_unique<EvolutionStrategy>(space, options));
}

StrategyResult make_annealing(const Problem& /*problem*/, const Space& space,
                              const StrategyOptions& options) {
  if (is_walked(space)) {
    return create_walk("annealing", space, options);
  }
  return std::unique_ptr<Strategy>(std::make_unique<AnnealingStrategy>(space, options));
}

}  // namespace

const StrategyEntry& evolution_strategy() {
  static const StrategyEntry entry{"evolution",
                                   "aging evolution: mutants of the best of a few, the oldest dies",
                                   make_evolution};
  return entry;
}

const StrategyEntry& annealing_strategy() {
  static const StrategyEntry entry{"annealing", "random walks that accept less and less loss",
                                   make_annealing};
  return entry;
}

}  // namespace foretune
