#include "foretune/dataset/split.h"

#include <algorithm>
#include <unordered_map>

#include "foretune/base/check.h"

namespace foretune {

std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng) {
  FORETUNE_CHECK(folds >= 1);
  // Groups in order of appearance, so that the result does not depend on a hash table's order.
  std::unordered_map<std::uint64_t, std::size_t> index_of;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto [found, is_new] = index_of.emplace(problems[i].group(), groups.size());
    if (is_new) {
      groups.emplace_back();
    }
    groups[found->second].push_back(i);
  }
  rng.shuffle(std::span(groups));
  // Large groups first, each to the fold that holds least: nearly equal folds.
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::size_t> held(folds, 0);
  std::vector<std::uint32_t> fold_of(problems.size(), 0);
  for (const std::vector<std::size_t>& group : groups) {
    const auto smallest = std::min_element(held.begin(), held.end());
    *smallest += group.size();
    for (const std::size_t problem : group) {
      fold_of[problem] = static_cast<std::uint32_t>(smallest - held.begin());
    }
  }
  return fold_of;
}

}  // namespace foretune
