#include "foretune/dataset/split.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"

namespace foretune {

namespace {

bool is_part_of(const FieldGroups& groups, GroupKey key) {
  switch (key) {
    case GroupKey::kSizes:
      return groups.sizes;
    case GroupKey::kWeights:
      return groups.weights;
    case GroupKey::kProblem:
      break;
  }
  return groups.problem;
}

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> kGroupKeyNames{"problem", "sizes", "weights"};

}  // namespace

std::span<const std::string_view> group_key_names() { return kGroupKeyNames; }
std::string_view to_string(GroupKey key) { return kGroupKeyNames[static_cast<std::size_t>(key)]; }

Result<GroupKey> parse_group_key(std::string_view text) {
  const auto found = std::find(kGroupKeyNames.begin(), kGroupKeyNames.end(), text);
  if (found == kGroupKeyNames.end()) {
    return fail(ErrorCode::kInvalidArgument, "'", text.substr(0, 40),
                "' is no key of groups (problem, sizes, weights)");
  }
  return static_cast<GroupKey>(found - kGroupKeyNames.begin());
}

std::uint64_t group_of(const Problem& problem, GroupKey key) {
  const std::span<const ProblemField> fields = problem.schema().fields;
  const auto has_key = [&](const ProblemField& field) { return is_part_of(field.groups, key); };
  if (key == GroupKey::kProblem || std::none_of(fields.begin(), fields.end(), has_key)) {
    return problem.group();
  }
  std::uint64_t hash = hash64("key", static_cast<std::uint64_t>(problem.type()));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (has_key(fields[i])) {
      hash = hash_combine(hash, static_cast<std::uint64_t>(problem.field(i)));
    }
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
