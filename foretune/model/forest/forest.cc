#include "foretune/model/forest/forest.h"

#include <cmath>

#include "foretune/base/check.h"

namespace foretune {
namespace {

Status check_arrays(const Forest& forest) {
  const std::size_t nodes = forest.feature.size();
  if (forest.threshold.size() != nodes || forest.left.size() != nodes ||
      forest.right.size() != nodes || forest.default_left.size() != nodes ||
      forest.missing.size() != nodes) {
    return fail(ErrorCode::kCorrupt, "the arrays of the forest differ in length");
  }
  if (forest.feature_count > Forest::kMaxFeatures) {
    return fail(ErrorCode::kCorrupt, "the forest claims ", forest.feature_count, " features");
  }
  std::uint64_t node = 0;
  std::uint64_t leaf = 0;
  for (std::size_t t = 0; t < forest.trees.size(); ++t) {
    const Forest::Tree& tree = forest.trees[t];
    if (tree.first_node != node || tree.first_leaf != leaf ||
        std::uint64_t{tree.leaf_count} != std::uint64_t{tree.node_count} + 1) {
      return fail(ErrorCode::kCorrupt, "tree ", t, " does not follow the tree before it, or has ",
                  tree.leaf_count, " leaves for ", tree.node_count, " nodes");
    }
    node += tree.node_count;
    leaf += tree.leaf_count;
    if (node > nodes || leaf > forest.leaf_value.size()) {
      return fail(ErrorCode::kCorrupt, "tree ", t, " ends after the end of the forest");
    }
  }
  if (node != nodes || leaf != forest.leaf_value.size()) {
    return fail(ErrorCode::kCorrupt, "the forest has nodes or leaves that belong to no tree");
  }
  return {};
}

Status check_categories(const Forest& forest) {
  const CategorySets& sets = forest.categories;
  std::uint32_t before = 0;
  for (const std::uint32_t end : sets.end) {
    if (end < before) {
      return fail(ErrorCode::kCorrupt, "the sets of categories are not in order");
    }
    before = end;
  }
  if (before != sets.words.size()) {
    return fail(ErrorCode::kCorrupt, "the sets of categories end at word ", before, " of ",
                sets.words.size());
  }
  bool any = false;
  for (std::size_t i = 0; i < forest.feature.size(); ++i) {
    if (!forest.is_categorical(i)) {
      continue;
    }
    any = true;
    const double set = forest.threshold[i];
    if (!(set >= 0 && set < static_cast<double>(sets.size()) && set == std::trunc(set))) {
      return fail(ErrorCode::kCorrupt, "node ", i, " looks into set ", set, " of ", sets.size(),
                  " sets of categories");
    }
  }
  if (!any && sets.size() > 0) {
    return fail(ErrorCode::kCorrupt, "the forest has sets of categories that no node looks into");
  }
  return {};
}

Status check_numbers(const Forest& forest) {
  for (std::size_t i = 0; i < forest.feature.size(); ++i) {
    if (forest.feature[i] >= forest.feature_count) {
      return fail(ErrorCode::kCorrupt, "node ", i, " splits on feature ", forest.feature[i], " of ",
                  forest.feature_count);
    }
    // Infinite ones are LightGBM's way to split missing values from all others.
    if (std::isnan(forest.threshold[i])) {
      return fail(ErrorCode::kCorrupt, "the threshold of node ", i, " is not a number");
    }
    if (forest.default_left[i] > 1 || static_cast<std::uint8_t>(forest.missing[i]) > 3) {
      return fail(ErrorCode::kCorrupt, "node ", i, " treats missing values in an unknown way");
    }
  }
  for (std::size_t i = 0; i < forest.leaf_value.size(); ++i) {
    if (!std::isfinite(forest.leaf_value[i])) {
      return fail(ErrorCode::kCorrupt, "the value of leaf ", i, " is not finite");
    }
  }
  return {};
}

// Every node but the root and every leaf has exactly one parent, and the root reaches them all.
Status check_tree(const Forest& forest, std::size_t index) {
  const Forest::Tree& tree = forest.trees[index];
  if (tree.node_count == 0) {
    return {};
  }
  std::vector<std::uint8_t> node_seen(tree.node_count, 0);
  std::vector<std::uint8_t> leaf_seen(tree.leaf_count, 0);
  std::vector<std::uint32_t> pending{0};
  node_seen[0] = 1;
  std::size_t reached = 0;
  while (!pending.empty()) {
    const std::uint32_t node = tree.first_node + pending.back();
    pending.pop_back();
    ++reached;
    for (const std::int32_t child : {forest.left[node], forest.right[node]}) {
      const bool is_node = child >= 0;
      const auto position = static_cast<std::uint32_t>(is_node ? child : ~child);
      std::vector<std::uint8_t>& seen = is_node ? node_seen : leaf_seen;
      if (position >= seen.size() || seen[position] != 0) {
        return fail(ErrorCode::kCorrupt, "tree ", index,
                    " is not a tree: ", is_node ? "node " : "leaf ", position,
                    position >= seen.size() ? " does not exist" : " has two parents");
      }
      seen[position] = 1;
      if (is_node) {
        pending.push_back(position);
      }
    }
  }
  if (reached != tree.node_count) {
    return fail(ErrorCode::kCorrupt, "tree ", index, " has nodes that its root does not reach");
  }
  return {};
}

bool goes_left(const Forest& forest, std::size_t node, double value) {
  const Forest::Missing missing = forest.missing[node];
  if (missing == Forest::Missing::kCategorical) {
    return std::isnan(value) ? forest.default_left[node] != 0
                             : forest.categories.contains(
                                   static_cast<std::size_t>(forest.threshold[node]), value);
  }
  if (std::isnan(value) && missing != Forest::Missing::kNan) {
    value = 0;
  }
  if ((missing == Forest::Missing::kZero && std::fabs(value) <= kForestZero) ||
      (missing == Forest::Missing::kNan && std::isnan(value))) {
    return forest.default_left[node] != 0;
  }
  return value <= forest.threshold[node];
}

}  // namespace

Status Forest::validate() const {
  FORETUNE_TRY_STATUS(check_arrays(*this));
  FORETUNE_TRY_STATUS(check_numbers(*this));
  FORETUNE_TRY_STATUS(check_categories(*this));
  for (std::size_t t = 0; t < trees.size(); ++t) {
    FORETUNE_TRY_STATUS(check_tree(*this, t));
  }
  return {};
}

std::int32_t next_node(const Forest& forest, const Forest::Tree& tree, std::int32_t at,
                       std::span<const double> row) {
  const std::size_t node = tree.first_node + static_cast<std::uint32_t>(at);
  double value = row[forest.feature[node]];
  // LightGBM's interface drops such values from a row before it predicts.
  if (std::fabs(value) <= kForestZero) {
    value = 0;
  }
  return goes_left(forest, node, value) ? forest.left[node] : forest.right[node];
}

double predict_reference(const Forest& forest, std::span<const double> row) {
  FORETUNE_CHECK(row.size() >= forest.feature_count);
  double sum = 0;
  for (const Forest::Tree& tree : forest.trees) {
    std::int32_t at = tree.node_count == 0 ? ~0 : 0;
    while (at >= 0) {
      at = next_node(forest, tree, at, row);
    }
    sum += forest.leaf_value[tree.first_leaf + static_cast<std::uint32_t>(~at)];
  }
  return sum;
}

}  // namespace foretune
