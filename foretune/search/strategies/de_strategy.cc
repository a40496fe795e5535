// Differential evolution (Storn and Price 1997, rand/1/bin) on the positions of parameter values:
// a member of the population is moved by the scaled difference of two others, and what results is
// projected to the nearest legal config that steps between neighbours lead to.
#include <algorithm>
#include <cmath>
#include <cstdint>
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

constexpr std::size_t kPopulation = 20;
constexpr double kWeight = 0.6;
constexpr double kCrossover = 0.7;
// The values of every position are those of so many configs.
constexpr std::size_t kProbes = 2000;
constexpr int kAttempts = 8;

// The values that each word takes in a space, ascending: a config becomes a point of whole numbers.
class Axes {
 public:
  Axes(const Space& space, Rng& rng) {
    const EnumerableSpace* const listed = space.enumerable();
    const bool all = listed != nullptr && listed->count() <= kProbes;
    for (std::size_t i = 0; i < (all ? listed->count() : kProbes); ++i) {
      const Result<Config> config = all ? Result<Config>(listed->unrank(i)) : space.sample(rng);
      if (!config) {
        return;
      }
      const Config probe = space.canonical(*config);
      values_.resize(std::max(values_.size(), probe.words.size()));
      for (std::size_t w = 0; w < probe.words.size(); ++w) {
        values_[w].push_back(probe.words[w]);
      }
    }
    for (std::vector<std::int32_t>& axis : values_) {
      std::sort(axis.begin(), axis.end());
      axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
    }
  }

  [[nodiscard]] double position(const Config& config, std::size_t word) const {
    if (word >= values_.size() || word >= config.words.size()) {
      return 0;
    }
    const std::vector<std::int32_t>& axis = values_[word];
    return static_cast<double>(std::lower_bound(axis.begin(), axis.end(), config.words[word]) -
                               axis.begin());
  }
  // The value at the position next to `at`.
  [[nodiscard]] std::int32_t value(std::size_t word, double at) const {
    const std::vector<std::int32_t>& axis = values_[word];
    const double last = static_cast<double>(axis.size() - 1);
    return axis[static_cast<std::size_t>(std::lround(std::clamp(at, 0.0, last)))];
  }
  // Steps between two configs of the same length; infinite for others.
  [[nodiscard]] double distance(const Config& a, const Config& b) const {
    if (a.words.size() != b.words.size()) {
      return std::numeric_limits<double>::infinity();
    }
    double sum = 0;
    for (std::size_t w = 0; w < a.words.size(); ++w) {
      sum += std::fabs(position(a, w) - position(b, w));
    }
    return sum;
  }

 private:
  std::vector<std::vector<std::int32_t>> values_;
};

class DeStrategy final : public PickingStrategy {
 public:
  DeStrategy(const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size),
        starts_(options.share_of(kPopulation)),
        order_(space) {}

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      const double value = value_of(trial);
      known_.insert_or_assign(trial.config, value);
      const auto found = pending_.find(trial.config);
      if (found == pending_.end()) {
        join(trial.config, value);
        continue;
      }
      replace(found->second, trial.config, value);
      pending_.erase(found);
    }
  }

 private:
  struct Member {
    Config config;
    double value = 0;
  };

  std::optional<Config> propose(Rng& rng) override {
    if (asked_count() < starts_) {
      return order_.next(rng);
    }
    if (!axes_) {
      axes_ = std::make_unique<Axes>(space(), rng);
    }
    for (int attempt = 0; attempt < kAttempts && population_.size() >= 4; ++attempt) {
      const std::size_t parent = next_++ % population_.size();
      Config trial = project(mutate(parent, rng), population_[parent].config);
      if (!asked(trial)) {
        pending_.insert_or_assign(trial, parent);
        return trial;
      }
      // Seen before: what is known of it counts again.
      if (const auto found = known_.find(trial); found != known_.end()) {
        replace(parent, trial, found->second);
      }
    }
    return order_.next(rng);
  }

  Config mutate(std::size_t parent, Rng& rng) const {
    const auto other = [&] { return population_[rng.below(population_.size())].config; };
    const Config base = other();
    const Config plus = other();
    const Config minus = other();
    Config trial = population_[parent].config;
    const std::size_t forced = trial.words.empty() ? 0 : rng.below(trial.words.size());
    for (std::size_t w = 0; w < trial.words.size(); ++w) {
      if (w == forced || rng.uniform() < kCrossover) {
        trial.words[w] =
            axes_->value(w, axes_->position(base, w) +
                                kWeight * (axes_->position(plus, w) - axes_->position(minus, w)));
      }
    }
    return trial;
  }

  // The wanted config when it is legal; else where steps from the parent, each the one that comes
  // nearest, lead.
  Config project(const Config& wanted, const Config& parent) const {
    if (space().why_not(wanted)) {
      return space().canonical(wanted);
    }
    Config here = parent;
    double distance = axes_->distance(here, wanted);
    while (true) {
      std::optional<Config> nearer;
      for (const Config& neighbour : space().neighbours(here)) {
        if (const double d = axes_->distance(neighbour, wanted); d < distance) {
          distance = d;
          nearer = neighbour;
        }
      }
      if (!nearer) {
        return space().canonical(here);
      }
      here = *std::move(nearer);
    }
  }

  void join(const Config& config, double value) {
    if (population_.size() < kPopulation && std::isfinite(value)) {
      population_.push_back({config, value});
    }
  }
  void replace(std::size_t parent, const Config& config, double value) {
    if (value < population_[parent].value) {
      population_[parent] = {config, value};
    }
  }

  std::size_t starts_;
  RandomOrder order_;
  std::unique_ptr<Axes> axes_;
  std::vector<Member> population_;
  std::size_t next_ = 0;
  std::unordered_map<Config, std::size_t> pending_;  // whose place they may take
  std::unordered_map<Config, double> known_;
};

StrategyResult make_de(const Problem& /*problem*/, const Space& space,
                       const StrategyOptions& options) {
  return std::unique_ptr<Strategy>(std::make_unique<DeStrategy>(space, options));
}

}  // namespace

const StrategyEntry& de_strategy() {
  static const StrategyEntry entry{
      "de", "differential evolution on the positions of parameter values", make_de};
  return entry;
}

}  // namespace foretune
