// What the strategies share: configs in random order without repetition, from any space, and the
// bookkeeping that nothing is asked twice.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/search/strategy.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune {

// All configs of a space in random order, each once. A space that cannot be enumerated is sampled
// until hardly anything new turns up.
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

// The value that a strategy compares by; infinite for a trial without one of its own.
double value_of(const Trial& trial);

// A strategy that proposes one config at a time. Repeats and illegal proposals are dropped here.
class PickingStrategy : public Strategy {
 public:
  PickingStrategy(const Space& space, std::size_t limit) : space_(space), limit_(limit) {}
  std::vector<Config> ask(std::size_t count, Rng& rng) final;
  void tell(std::span<const Trial> /*finished*/) override {}

 protected:
  // The next proposal; nothing when there is none left. May repeat itself, but not for ever.
  virtual std::optional<Config> propose(Rng& rng) = 0;
  [[nodiscard]] bool asked(const Config& config) const { return asked_.contains(config); }
  [[nodiscard]] std::size_t asked_count() const { return asked_.size(); }
  [[nodiscard]] const Space& space() const { return space_; }

 private:
  const Space& space_;
  std::size_t limit_;  // 0: none
  std::unordered_set<Config> asked_;
};

using StrategyResult = Result<std::unique_ptr<Strategy>>;
StrategyResult make_exhaustive(const Problem& problem, const Space& space,
                               const StrategyOptions& options);
StrategyResult make_random(const Problem& problem, const Space& space,
                           const StrategyOptions& options);
StrategyResult make_stratified(const Problem& problem, const Space& space,
                               const StrategyOptions& options);
StrategyResult make_model(const Problem& problem, const Space& space,
                          const StrategyOptions& options);
StrategyResult make_local(const Problem& problem, const Space& space,
                          const StrategyOptions& options);
StrategyResult make_de(const Problem& problem, const Space& space, const StrategyOptions& options);
StrategyResult make_evolution(const Problem& problem, const Space& space,
                              const StrategyOptions& options);
StrategyResult make_annealing(const Problem& problem, const Space& space,
                              const StrategyOptions& options);

}  // namespace foretune
