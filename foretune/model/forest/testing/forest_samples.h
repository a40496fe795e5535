// Random forests and rows for the tests of this module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

struct ForestShape {
  std::uint32_t features = 6;
  std::uint32_t trees = 10;
  std::uint32_t max_leaves = 31;
  bool vary_leaves = true;    // from one leaf up; otherwise all have max_leaves
  bool chains = false;        // every split hangs below the one before
  bool any_missing = true;    // all missing types and directions, mixed within a feature
  std::uint32_t levels = 12;  // distinct thresholds per feature, 0: no two are alike
  std::uint32_t sets = 0;     // of categories; when there are any, half of the splits look into one
  bool interactions = true;   // for the engine's tests: whether columns may be of that kind
};

inline double sample_threshold(const ForestShape& shape, Rng& rng) {
  if (shape.levels == 0) {
    return rng.normal();
  }
  if (rng.below(30) == 0) {
    return std::numeric_limits<double>::infinity() * (rng.below(2) == 0 ? 1 : -1);
  }
  const auto level = static_cast<double>(rng.below(shape.levels));
  // Both sides of zero, and zero itself.
  const std::size_t middle = shape.levels / 2;
  return (level - static_cast<double>(middle)) / 4.0;
}

// Grown as LightGBM grows trees: a leaf is split, its right half becomes the newest leaf.
inline void add_random_tree(const ForestShape& shape, Rng& rng, Forest& forest) {
  const std::uint32_t leaves = shape.vary_leaves
                                   ? static_cast<std::uint32_t>(rng.between(1, shape.max_leaves))
                                   : shape.max_leaves;
  const std::size_t base = forest.feature.size();
  forest.trees.push_back({static_cast<std::uint32_t>(base), leaves - 1,
                          static_cast<std::uint32_t>(forest.leaf_value.size()), leaves});
  // Where each leaf hangs: node and side.
  std::vector<std::pair<std::size_t, bool>> parent(leaves);
  for (std::uint32_t node = 0; node + 1 < leaves; ++node) {
    const auto leaf = static_cast<std::uint32_t>(shape.chains ? node : rng.below(node + 1));
    if (node > 0) {
      auto& side = parent[leaf].second ? forest.left : forest.right;
      side[parent[leaf].first] = static_cast<std::int32_t>(node);
    }
    const bool categorical = shape.sets > 0 && rng.below(2) == 0;
    forest.feature.push_back(static_cast<std::uint32_t>(rng.below(forest.feature_count)));
    forest.threshold.push_back(categorical ? static_cast<double>(rng.below(shape.sets))
                                           : sample_threshold(shape, rng));
    forest.left.push_back(~static_cast<std::int32_t>(leaf));
    forest.right.push_back(~static_cast<std::int32_t>(node + 1));
    forest.default_left.push_back(static_cast<std::uint8_t>(rng.below(2)));
    forest.missing.push_back(categorical         ? Forest::Missing::kCategorical
                             : shape.any_missing ? static_cast<Forest::Missing>(rng.below(3))
                                                 : Forest::Missing::kNone);
    parent[leaf] = {base + node, true};
    parent[node + 1] = {base + node, false};
  }
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    forest.leaf_value.push_back(rng.normal());
  }
}

inline Forest random_forest(const ForestShape& shape, Rng& rng) {
  Forest forest;
  forest.feature_count = shape.features;
  for (std::uint32_t t = 0; t < shape.trees; ++t) {
    add_random_tree(shape, rng, forest);
  }
  for (std::uint32_t set = 0; set < shape.sets; ++set) {
    for (std::uint64_t words = rng.below(3); words > 0; --words) {
      forest.categories.words.push_back(static_cast<std::uint32_t>(rng.next()));
    }
    forest.categories.end.push_back(static_cast<std::uint32_t>(forest.categories.words.size()));
  }
  return forest;
}

// Mostly values around the thresholds (and exactly on them); the rest is what breaks comparisons.
inline double sample_value(const ForestShape& shape, Rng& rng) {
  constexpr std::array kHard{0.0,
                             -0.0,
                             1e-36,
                             -1e-36,
                             static_cast<double>(1e-35F),
                             -static_cast<double>(1e-35F),
                             1e-34,
                             -1e-34,
                             1e300,
                             -1e300,
                             std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  const std::uint64_t draw = rng.below(8);
  if (shape.sets > 0 && draw > 4) {
    return static_cast<double>(rng.between(-3, 70)) + (draw == 5 ? rng.uniform() : 0.0);
  }
  if (draw == 0) {
    return kHard[rng.below(kHard.size())];
  }
  return draw < 4 ? sample_threshold(shape, rng) : 2 * rng.normal();
}

}  // namespace foretune
