// Neighbours of the best so far: best-first search from a few random starts. When all neighbours of
// the best are tried, those of the second best follow, and so on; then random restarts.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

constexpr std::size_t kStarts = 8;

class LocalStrategy final : public PickingStrategy {
 public:
  LocalStrategy(const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size),
        starts_(options.share_of(kStarts)),
        exploration_(options.exploration),
        order_(space) {}

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      if (trial.value) {  // a failed config has no neighbourhood worth trying
        open_.emplace(trial.censored, *trial.value, trial.config);
      }
    }
  }

 private:
  std::optional<Config> propose(Rng& rng) override {
    if (asked_count() < starts_ || rng.uniform() < exploration_) {
      if (std::optional<Config> config = order_.next(rng)) {
        return config;
      }
    }
    if (std::optional<Config> config = next_neighbour(rng)) {
      return config;
    }
    return order_.next(rng);
  }

  // An untried neighbour of the best config that has one.
  std::optional<Config> next_neighbour(Rng& rng) {
    while (!open_.empty()) {
      const Config& best = std::get<Config>(*open_.begin());
      auto found = untried_.find(best);
      if (found == untried_.end()) {
        std::vector<Config> neighbours = space().neighbours(best);
        rng.shuffle(std::span(neighbours));
        found = untried_.emplace(best, std::move(neighbours)).first;
      }
      while (!found->second.empty()) {
        Config config = space().canonical(found->second.back());
        found->second.pop_back();
        if (!asked(config)) {
          return config;
        }
      }
      open_.erase(open_.begin());  // and its empty list stays: it is not expanded again
    }
    return std::nullopt;
  }

  std::size_t starts_;
  double exploration_;
  RandomOrder order_;
  // Measured configs whose neighbours may be untried: real times before bounds, fastest first.
  std::set<std::tuple<bool, double, Config>> open_;
  std::unordered_map<Config, std::vector<Config>> untried_;
};

StrategyResult make_local(const Problem& /*problem*/, const Space& space,
                          const StrategyOptions& options) {
  return std::unique_ptr<Strategy>(std::make_unique<LocalStrategy>(space, options));
}

}  // namespace

const StrategyEntry& local_strategy() {
  static const StrategyEntry entry{
      "local", "neighbours of the best so far, from a few random starts", make_local};
  return entry;
}

}  // namespace foretune
