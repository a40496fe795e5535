#include "foretune/search/coverage.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"

namespace foretune {
namespace {

// Single values come first: one weighs as much as all pairs it is part of.
constexpr double kSingleWeight = static_cast<double>(kPairedPositions);

std::uint64_t single_key(std::size_t position, std::int32_t value) {
  return hash_combine(position + 1, static_cast<std::uint32_t>(value));
}

std::uint64_t pair_key(std::uint64_t a, std::uint64_t b) { return hash_combine(a, b); }

double diminished(std::uint32_t count) { return 1.0 / (1.0 + static_cast<double>(count)); }

// Calls visit(key, weight) for every single value and pair of values; the length of a sequence
// counts as a value too.
template <class Visit>
void visit_values(const Config& config, const Visit& visit) {
  const std::size_t width = config.words.size();
  visit(hash_combine(0, width), kSingleWeight);
  for (std::size_t i = 0; i < width; ++i) {
    const std::uint64_t key = single_key(i, config.words[i]);
    visit(key, kSingleWeight);
    for (std::size_t j = 0; i < kPairedPositions && j < i; ++j) {
      visit(pair_key(single_key(j, config.words[j]), key), 1.0);
    }
  }
}

}  // namespace

CoveragePicker::CoveragePicker(std::vector<Config> candidates)
    : candidates_(std::move(candidates)) {
  std::vector<Candidate> all;
  all.reserve(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    all.push_back({gain(candidates_[i]), i});
  }
  heap_ = std::priority_queue<Candidate>(std::less<Candidate>(), std::move(all));
}

double CoveragePicker::gain(const Config& config) const {
  double total = 0;
  visit_values(config, [&](std::uint64_t key, double weight) {
    const auto found = counts_.find(key);
    total += weight * diminished(found == counts_.end() ? 0 : found->second);
  });
  return total;
}

void CoveragePicker::count(const Config& config) {
  visit_values(config, [&](std::uint64_t key, double) { ++counts_[key]; });
}

Config CoveragePicker::pick() {
  FORETUNE_CHECK(!heap_.empty());
  for (;;) {
    Candidate top = heap_.top();
    heap_.pop();
    const double now = gain(candidates_[top.index]);
    // Gains only ever fall: one that still leads with its present gain leads for good.
    top.gain = now;
    if (heap_.empty() || !(top < heap_.top())) {
      const Config picked = candidates_[top.index];
      count(picked);
      return picked;
    }
    heap_.push(top);
  }
}

}  // namespace foretune
