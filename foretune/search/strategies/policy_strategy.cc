// Follows a policy that builds configs without measuring: its proposals first, the most promising
// one foremost, then what lies next to the fastest that was measured.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/model/proposer.h"
#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

constexpr std::size_t kProposals = 16;
// Calls of the proposer in a row that bring nothing new.
constexpr int kMaxRepeats = 4;
// The share of neighbours of the fastest among the configs behind the first proposals; the others
// are the policy's.
constexpr double kNeighbourShare = 0.5;

class PolicyStrategy final : public PickingStrategy {
 public:
  PolicyStrategy(const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size), proposer_(*options.proposer) {}

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      if (!best_ || value_of(trial) < value_of(*best_)) {
        best_ = trial;
        neighbours_.clear();
        has_neighbours_ = false;
      }
    }
  }

 private:
  std::optional<Config> propose(Rng& rng) override {
    const bool is_first_round = asked_count() < kProposals && repeats_ == 0;
    if (!is_first_round && rng.uniform() < kNeighbourShare) {
      if (std::optional<Config> next = next_neighbour(rng)) {
        return next;
      }
    }
    while (next_ == proposals_.size() && repeats_ < kMaxRepeats) {
      refill(rng);
    }
    return next_ < proposals_.size() ? std::optional(std::move(proposals_[next_++]))
                                     : next_neighbour(rng);
  }

  void refill(Rng& rng) {
    proposals_.clear();
    next_ = 0;
    for (Config& config : proposer_.propose(kProposals, rng)) {
      if (seen_.insert(config).second && space().why_not(config)) {
        proposals_.push_back(std::move(config));
      }
    }
    repeats_ = proposals_.empty() ? repeats_ + 1 : 0;
  }

  std::optional<Config> next_neighbour(Rng& rng) {
    if (!has_neighbours_ && best_ && best_->value) {
      neighbours_ = space().neighbours(best_->config);
      rng.shuffle(std::span(neighbours_));
      has_neighbours_ = true;
    }
    while (!neighbours_.empty()) {
      Config config = space().canonical(neighbours_.back());
      neighbours_.pop_back();
      if (seen_.insert(config).second) {
        return config;
      }
    }
    return std::nullopt;
  }

  ConfigProposer& proposer_;
  std::vector<Config> proposals_;
  std::size_t next_ = 0;
  int repeats_ = 0;
  std::optional<Trial> best_;
  std::vector<Config> neighbours_;  // in reverse order
  bool has_neighbours_ = false;
  std::unordered_set<Config> seen_;
};

StrategyResult make_policy(const Problem& /*problem*/, const Space& space,
                           const StrategyOptions& options) {
  if (options.proposer == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "the strategy 'policy' needs a model of kind policy");
  }
  return std::unique_ptr<Strategy>(std::make_unique<PolicyStrategy>(space, options));
}

}  // namespace

const StrategyEntry& policy_strategy() {
  static const StrategyEntry entry{
      "policy", "what a learned policy builds, then the neighbours of the fastest", make_policy,
      true};
  return entry;
}

}  // namespace foretune
