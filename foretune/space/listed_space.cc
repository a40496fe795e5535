#include "foretune/space/listed_space.h"

#include <algorithm>
#include <cstddef>

#include "foretune/base/check.h"

namespace foretune {

Support ListedSpace::why_not(const Config& config) const {
  if (!unlisted_.empty() && std::binary_search(configs_.begin(), configs_.end(), config)) {
    return Support::yes();
  }
  // The declared rules give the reason why it was left out, if they have one.
  const Support legal = rules_ ? rules_->why_not(config, problem_, hardware_) : Support::yes();
  return legal && !unlisted_.empty() ? Support::no(unlisted_) : legal;
}

Result<Config> ListedSpace::sample(Rng& rng) const {
  if (configs_.empty()) {
    return fail(ErrorCode::kNotFound, "no config is listed for this problem");
  }
  return configs_[rng.below(configs_.size())];
}

Config ListedSpace::unrank(std::uint64_t index) const {
  FORETUNE_CHECK(index < configs_.size());
  return configs_[index];
}

std::vector<Config> ListedSpace::neighbours(const Config& config) const {
  const std::size_t width = config.words.size();
  std::vector<const Config*> below(width, nullptr);
  std::vector<const Config*> above(width, nullptr);
  for (const Config& listed : configs_) {
    if (listed.words.size() != width) {
      continue;
    }
    std::size_t different = width;
    std::size_t differences = 0;
    for (std::size_t i = 0; i < width; ++i) {
      if (listed.words[i] != config.words[i]) {
        different = i;
        ++differences;
      }
    }
    if (differences != 1) {
      continue;
    }
    const std::int32_t value = listed.words[different];
    if (value < config.words[different]) {
      const Config*& best = below[different];
      best = best == nullptr || value > best->words[different] ? &listed : best;
    } else {
      const Config*& best = above[different];
      best = best == nullptr || value < best->words[different] ? &listed : best;
    }
  }
  std::vector<Config> found;
  for (std::size_t i = 0; i < width; ++i) {
    for (const Config* candidate : {below[i], above[i]}) {
      if (candidate != nullptr) {
        found.push_back(*candidate);
      }
    }
  }
  return found;
}

}  // namespace foretune
