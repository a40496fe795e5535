#include "foretune/collect/active_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

namespace foretune {
namespace {

constexpr std::array<ActivePolicy, 8> kPolicies{{
    {.name = "mixed",
     .description = "half the best predictions, a quarter the uncertain, a quarter random",
     .best = 0.5,
     .uncertain = 0.25},
    {.name = "random", .description = "no model: random configs"},
    {.name = "best", .description = "the best predictions", .best = 1},
    {.name = "epsilon-greedy",
     .description = "three quarters the best predictions, a quarter random",
     .best = 0.75},
    {.name = "half-greedy", .description = "half the best predictions, half random", .best = 0.5},
    {.name = "disagreement", .description = "what the forests disagree about", .uncertain = 1},
    {.name = "improvement",
     .description = "the largest expected improvement over the best measured",
     .improving = 1},
    {.name = "need",
     .description = "as mixed, but more for the half of the problems with more to gain",
     .best = 0.5,
     .uncertain = 0.25,
     .by_need = true},
}};

// Positions by descending value; of equal ones the first comes first.
std::vector<std::size_t> order_by(std::size_t count, auto&& value) {
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double v = value(i);
    order.emplace_back(std::isnan(v) ? std::numeric_limits<double>::infinity() : -v, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> out;
  out.reserve(count);
  for (const auto& [key, index] : order) {
    out.push_back(index);
  }
  return out;
}

// A list of candidates to be taken from the front, some of which another list may have taken.
struct Queue {
  double share = 0;
  std::vector<std::size_t> order;
  std::size_t next = 0;
};

std::vector<Queue> queues_of(const ActivePolicy& policy, const CandidateScores& candidates,
                             Rng& rng) {
  const std::size_t count = candidates.scores.size();
  std::vector<Queue> queues;
  if (policy.best > 0) {
    queues.push_back(
        {policy.best, order_by(count, [&](std::size_t i) { return -candidates.scores[i]; })});
  }
  if (policy.improving > 0) {
    queues.push_back({policy.improving, order_by(count, [&](std::size_t i) {
                        return expected_improvement(candidates.scores[i], candidates.uncertainty[i],
                                                    candidates.incumbent);
                      })});
  }
  if (policy.uncertain > 0) {
    queues.push_back({policy.uncertain,
                      order_by(count, [&](std::size_t i) { return candidates.uncertainty[i]; })});
  }
  // Last, so that rounding never leaves a slot without a queue.
  std::vector<std::size_t> shuffled(count);
  std::iota(shuffled.begin(), shuffled.end(), std::size_t{0});
  rng.shuffle(std::span(shuffled));
  queues.push_back({1, std::move(shuffled)});
  return queues;
}

}  // namespace

std::span<const ActivePolicy> active_policies() { return kPolicies; }

Result<ActivePolicy> find_active_policy(std::string_view name) {
  std::string names;
  for (const ActivePolicy& policy : kPolicies) {
    if (policy.name == name) {
      return policy;
    }
    names += names.empty() ? "" : ", ";
    names += policy.name;
  }
  return fail(ErrorCode::kNotFound, "there is no policy '", name, "'; there are: ", names);
}

double expected_improvement(double score, double uncertainty, double incumbent) {
  const double gain = incumbent - score;
  if (!(uncertainty > 0)) {
    return std::max(0.0, gain);
  }
  const double z = gain / uncertainty;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  const double share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return gain * share + uncertainty * density;
}

double largest_improvement(const CandidateScores& candidates) {
  double largest = 0;
  for (std::size_t i = 0; i < candidates.scores.size(); ++i) {
    const double improvement =
        expected_improvement(candidates.scores[i], candidates.uncertainty[i], candidates.incumbent);
    // A comparison with a NaN is false.
    largest = improvement > largest ? improvement : largest;
  }
  return largest;
}

std::vector<std::size_t> choose_candidates(const ActivePolicy& policy,
                                           const CandidateScores& candidates, std::size_t count,
                                           Rng& rng) {
  std::vector<Queue> queues = queues_of(policy, candidates, rng);
  std::vector<bool> taken(candidates.scores.size());
  std::vector<std::size_t> chosen;
  count = std::min(count, candidates.scores.size());
  while (chosen.size() < count) {
    // By chance for every slot, so that shares hold over all problems, however few each gets.
    double draw = rng.uniform();
    std::size_t q = 0;
    while (q + 1 < queues.size() && draw >= queues[q].share) {
      draw -= queues[q].share;
      ++q;
    }
    Queue& queue = queues[q];
    while (taken[queue.order[queue.next]]) {
      ++queue.next;
    }
    const std::size_t candidate = queue.order[queue.next];
    taken[candidate] = true;
    chosen.push_back(candidate);
  }
  return chosen;
}

namespace {

// Deals to `takers` one after another, a round each, while there are measurements and room.
void deal(std::size_t& total, std::span<const std::size_t> takers, std::size_t rounds,
          std::span<const std::size_t> room, std::vector<std::size_t>& shares) {
  for (bool dealt = true; dealt && total > 0 && rounds > 0; --rounds) {
    dealt = false;
    for (const std::size_t taker : takers) {
      if (total > 0 && shares[taker] < room[taker]) {
        ++shares[taker];
        --total;
        dealt = true;
      }
    }
  }
}

}  // namespace

std::vector<std::size_t> share_out(std::size_t total, std::span<const double> needs,
                                   std::span<const std::size_t> room, bool by_need) {
  const std::vector<std::size_t> order =
      order_by(needs.size(), [&](std::size_t i) { return needs[i]; });
  std::vector<std::size_t> shares(needs.size());
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  if (by_need) {
    deal(total, order, 1, room, shares);
    deal(total, std::span(order).first((order.size() + 1) / 2), kAll, room, shares);
  }
  deal(total, order, kAll, room, shares);
  return shares;
}

}  // namespace foretune
