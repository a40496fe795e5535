// The code that strategies share: configs of any space in random order without repetition, and the
// bookkeeping that prevents proposing a config twice.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/search/strategy.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune {

// Returns all configs of a space in random order, each once. Samples a space that cannot be
// enumerated until hardly any new config appears.
class RandomOrder {
 public:
  explicit RandomOrder(const Space& space) : space_(space) {}
  std::optional<Config> next(Rng& rng);

 private:
  std::optional<Config> next_rank(const EnumerableSpace& ranked, Rng& rng);
  std::optional<Config> next_sample(Rng& rng);

  const Space& space_;
  // Ranked: a Fisher-Yates shuffle that stores only what was swapped.
  std::uint64_t drawn_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> swapped_;
  // Sampled.
  std::unordered_set<Config> seen_;
};

// Returns the value by which a strategy compares trials; infinite for a trial without a value.
double value_of(const Trial& trial);

// A strategy that proposes one config at a time. This class drops repeats and illegal proposals.
class PickingStrategy : public Strategy {
 public:
  PickingStrategy(const Space& space, std::size_t limit) : space_(space), limit_(limit) {}
  std::vector<Config> ask(std::size_t count, Rng& rng) final;
  void tell(std::span<const Trial> /*finished*/) override {}

 protected:
  // Returns the next proposal; nothing when none is left. It may repeat configs, but not for ever.
  virtual std::optional<Config> propose(Rng& rng) = 0;
  [[nodiscard]] bool asked(const Config& config) const { return asked_.contains(config); }
  [[nodiscard]] std::size_t asked_count() const { return asked_.size(); }
  [[nodiscard]] const Space& space() const { return space_; }

 private:
  const Space& space_;
  std::size_t limit_;  // 0: none
  std::unordered_set<Config> asked_;
};

// Evolution and annealing on any kind of space share the rest.
//
// Real et al. 2019, "Regularized evolution for image classifier architecture search": the best of a
// few drawn members is mutated, the child joins, and the oldest leaves, however good it is.
template <class Member>
class AgingPopulation {
 public:
  static constexpr std::size_t kSize = 32;
  static constexpr std::size_t kTournament = 8;

  void join(double value, Member member) {
    members_.emplace_back(value, std::move(member));
    if (members_.size() > kSize) {
      members_.pop_front();
    }
  }
  [[nodiscard]] bool empty() const { return members_.empty(); }
  // Returns the best of a few drawn members. There must be at least one member.
  const Member& draw(Rng& rng) const {
    const std::pair<double, Member>* best = nullptr;
    for (std::size_t i = 0; i < kTournament; ++i) {
      const auto& drawn = members_[rng.below(members_.size())];
      best = best == nullptr || drawn < *best ? &drawn : best;
    }
    return best->second;
  }

 private:
  std::deque<std::pair<double, Member>> members_;  // by age
};

// Kirkpatrick et al. 1983, "Optimization by simulated annealing", on ln(value).
class Cooling {
 public:
  // With 0 `steps` it takes the usual number.
  explicit Cooling(std::size_t steps) : steps_(steps > 0 ? static_cast<double>(steps) : 500) {}
  // Returns true when to move from one value to another after `done` steps; `dice` is from [0, 1).
  [[nodiscard]] bool accepts(double from, double to, std::size_t done, double dice) const {
    // Temperatures in units of ln(value): at the beginning a loss of a third is often accepted.
    constexpr double kHot = 0.3;
    constexpr double kCold = 0.005;
    const double share = std::min(1.0, static_cast<double>(done) / steps_);
    const double temperature = kHot * std::pow(kCold / kHot, share);
    // Values are positive where they are times; others are compared as they are.
    const double loss = to > 0 && from > 0 ? std::log(to / from) : to - from;
    return loss <= 0 || dice < std::exp(-loss / temperature);
  }

 private:
  double steps_;
};

// True when the strategies for all spaces walk this one action by action.
inline bool is_walked(const Space& space) {
  return space.sequential() != nullptr && space.sequential()->prefers_walks();
}

using StrategyResult = Result<std::unique_ptr<Strategy>>;

// Returns the error for a name that is not among these.
tl::unexpected<Error> no_strategy(std::string_view name, const std::vector<std::string>& names);

}  // namespace foretune
