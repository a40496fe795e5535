#include "foretune/search/picking.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace foretune {
namespace {

// A sampled space is taken as used up after this many draws in a row that brought nothing new; with
// n configs seen, one unseen among them would be missed with a chance of about exp(-kDrawsPerSeen).
constexpr std::size_t kMinDraws = 1000;
constexpr std::size_t kDrawsPerSeen = 10;

}  // namespace

double value_of(const Trial& trial) {
  return trial.value && !trial.censored ? *trial.value : std::numeric_limits<double>::infinity();
}

std::optional<Config> RandomOrder::next(Rng& rng) {
  const EnumerableSpace* const ranked = space_.enumerable();
  return ranked != nullptr ? next_rank(*ranked, rng) : next_sample(rng);
}

std::optional<Config> RandomOrder::next_rank(const EnumerableSpace& ranked, Rng& rng) {
  const std::uint64_t count = ranked.count();
  if (drawn_ >= count) {
    return std::nullopt;
  }
  const auto at = [&](std::uint64_t position) {
    const auto found = swapped_.find(position);
    return found == swapped_.end() ? position : found->second;
  };
  const std::uint64_t chosen = drawn_ + rng.below(count - drawn_);
  const std::uint64_t rank = at(chosen);
  swapped_[chosen] = at(drawn_);
  swapped_.erase(drawn_);
  ++drawn_;
  return ranked.unrank(rank);
}

std::optional<Config> RandomOrder::next_sample(Rng& rng) {
  const std::size_t draws = std::max(kMinDraws, kDrawsPerSeen * seen_.size());
  for (std::size_t i = 0; i < draws; ++i) {
    const Result<Config> sampled = space_.sample(rng);
    if (!sampled) {
      return std::nullopt;
    }
    Config config = space_.canonical(*sampled);
    if (seen_.insert(config).second) {
      return config;
    }
  }
  return std::nullopt;
}

std::vector<Config> PickingStrategy::ask(std::size_t count, Rng& rng) {
  if (limit_ > 0) {
    count = std::min(count, limit_ - std::min(limit_, asked_.size()));
  }
  std::vector<Config> picked;
  while (picked.size() < count) {
    std::optional<Config> config = propose(rng);
    if (!config) {
      break;
    }
    if (!asked_.contains(*config) && space_.why_not(*config)) {
      asked_.insert(*config);
      picked.push_back(*std::move(config));
    }
  }
  return picked;
}

}  // namespace foretune
