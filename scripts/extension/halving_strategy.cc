// A strategy for scripts/extension_cost.py: random configs, then neighbours of the better half.
#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

class Halving final : public Strategy {
 public:
  explicit Halving(const Space& space) : space_(space) {}

  std::vector<Config> ask(std::size_t count, Rng& rng) override {
    std::vector<Config> out;
    for (const auto& [value, config] : better_half()) {
      for (Config& neighbour : space_.neighbours(config)) {
        if (out.size() < count / 2) {
          add(space_.canonical(neighbour), out);
        }
      }
    }
    constexpr int kTries = 200;
    for (int i = 0; i < kTries && out.size() < count; ++i) {
      if (const auto config = space_.sample(rng)) {
        add(space_.canonical(*config), out);
      }
    }
    return out;
  }
  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      if (trial.value && !trial.censored) {
        seen_.emplace_back(*trial.value, trial.config);
      }
    }
  }

 private:
  std::vector<std::pair<double, Config>> better_half() {
    std::sort(seen_.begin(), seen_.end());
    return {seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(seen_.size() / 2)};
  }
  void add(Config config, std::vector<Config>& out) {
    if (asked_.insert(config).second) {
      out.push_back(std::move(config));
    }
  }

  const Space& space_;
  std::vector<std::pair<double, Config>> seen_;
  std::unordered_set<Config> asked_;
};

}  // namespace

const StrategyEntry& halving_strategy() {
  static const StrategyEntry entry{"halving", "random ones and neighbours of the better half",
                                   [](const Problem&, const Space& space,
                                      const StrategyOptions&) -> Result<std::unique_ptr<Strategy>> {
                                     return std::make_unique<Halving>(space);
                                   }};
  return entry;
}

}  // namespace foretune
