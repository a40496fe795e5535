#include "foretune/dataset/split.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"

namespace foretune {

namespace {

std::span<const std::string_view> size_fields(ProblemType type) {
  static constexpr std::array<std::string_view, 3> kGemm{"m", "n", "k"};
  static constexpr std::array<std::string_view, 12> kConv{
      "n", "c", "k", "g", "hi", "wi", "y", "x", "di", "z", "dilation_h", "dilation_w"};
  switch (type) {
    case ProblemType::kGemm:
      return kGemm;
    case ProblemType::kConv:
      return kConv;
    default:
      return {};
  }
}

}  // namespace

std::uint64_t group_of(const Problem& problem, GroupKey key) {
  const std::span<const std::string_view> names = size_fields(problem.type());
  if (key == GroupKey::kProblem || names.empty()) {
    return problem.group();
  }
  std::uint64_t hash = hash64("sizes", static_cast<std::uint64_t>(problem.type()));
  for (const std::string_view name : names) {
    const std::optional<std::size_t> field = problem.schema().find(name);
    FORETUNE_CHECK(field.has_value());
    hash = hash_combine(hash, static_cast<std::uint64_t>(problem.fields()[*field]));
  }
  return hash;
}

std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng, GroupKey key) {
  FORETUNE_CHECK(folds >= 1);
  // Groups in order of appearance, so that the result does not depend on a hash table's order.
  std::unordered_map<std::uint64_t, std::size_t> index_of;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto [found, is_new] = index_of.emplace(group_of(problems[i], key), groups.size());
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
