#include "foretune/model/train/combine_forests.h"

#include <utility>

#include "foretune/base/check.h"

namespace foretune::train_internal {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append_categories(CategorySets& to, const CategorySets& from) {
  const auto words = static_cast<std::uint32_t>(to.words.size());
  append(to.words, from.words);
  for (const std::uint32_t end : from.end) {
    to.end.push_back(words + end);
  }
}

}  // namespace

Forest joined(const Forest& first, const Forest& second) {
  FORETUNE_CHECK(first.feature_count == second.feature_count);
  Forest out = first;
  const auto nodes = static_cast<std::uint32_t>(first.feature.size());
  const auto leaves = static_cast<std::uint32_t>(first.leaf_value.size());
  for (Forest::Tree tree : second.trees) {
    tree.first_node += nodes;
    tree.first_leaf += leaves;
    out.trees.push_back(tree);
  }
  append(out.feature, second.feature);
  append(out.threshold, second.threshold);
  append(out.left, second.left);
  append(out.right, second.right);
  append(out.default_left, second.default_left);
  append(out.missing, second.missing);
  append(out.leaf_value, second.leaf_value);
  for (std::size_t node = 0; node < second.feature.size(); ++node) {
    if (second.is_categorical(node)) {
      out.threshold[nodes + node] += static_cast<double>(first.categories.size());
    }
  }
  append_categories(out.categories, second.categories);
  return out;
}

Forest scaled(Forest forest, double factor) {
  for (double& value : forest.leaf_value) {
    value *= factor;
  }
  return forest;
}

Forest averaged(std::span<const Forest> forests) {
  FORETUNE_CHECK(!forests.empty());
  if (forests.size() == 1) {
    return forests.front();
  }
  const double share = 1 / static_cast<double>(forests.size());
  Forest out = scaled(forests.front(), share);
  for (const Forest& forest : forests.subspan(1)) {
    out = joined(out, scaled(forest, share));
  }
  return out;
}

}  // namespace foretune::train_internal
