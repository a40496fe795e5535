#include "foretune/model/attribution.h"

#include <gtest/gtest.h>

#include <numeric>

#include "foretune/model/forest/testing/forest_samples.h"

namespace foretune {
namespace {

// One split of feature 0 at 0.5, below it one of feature 1 at 0.5.
Forest two_splits() {
  Forest forest;
  forest.feature_count = 2;
  forest.trees = {{.first_node = 0, .node_count = 2, .first_leaf = 0, .leaf_count = 3}};
  forest.feature = {0, 1};
  forest.threshold = {0.5, 0.5};
  forest.left = {~0, ~1};
  forest.right = {1, ~2};
  forest.default_left = {0, 0};
  forest.missing = {Forest::Missing::kNone, Forest::Missing::kNone};
  forest.leaf_value = {1, 4, 8};
  return forest;
}

TEST(Attribution, CreditsEverySplitWithTheChangeOfTheMean) {
  const std::vector<double> rows{0, 0, 0, 1, 1, 0, 1, 1};  // predictions 1, 1, 4, 8
  const auto parts = attribute_paths(two_splits(), rows, std::vector<std::size_t>{0, 3});
  EXPECT_DOUBLE_EQ(parts[0].base, 3.5);
  EXPECT_DOUBLE_EQ(parts[0].of_feature[0], 1 - 3.5);
  EXPECT_DOUBLE_EQ(parts[0].of_feature[1], 0);
  EXPECT_DOUBLE_EQ(parts[1].of_feature[0], 6 - 3.5);
  EXPECT_DOUBLE_EQ(parts[1].of_feature[1], 8 - 6);
}

TEST(Attribution, AddsUpToThePredictionOfAnyForest) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const ForestShape shape{.features = 5, .trees = 7, .max_leaves = 17, .sets = 2};
    const Forest forest = random_forest(shape, rng);
    std::vector<double> rows(40 * shape.features);
    for (double& value : rows) {
      value = sample_value(shape, rng);
    }
    std::vector<std::size_t> all(40);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto parts = attribute_paths(forest, rows, all);
    for (const std::size_t i : all) {
      const double sum =
          std::accumulate(parts[i].of_feature.begin(), parts[i].of_feature.end(), parts[i].base);
      EXPECT_NEAR(sum, predict_reference(forest, std::span(rows).subspan(i * 5, 5)), 1e-9)
          << "seed " << seed << " row " << i;
    }
  }
}

TEST(Attribution, AFeatureThatAllRowsShareContributesNothing) {
  Rng rng(3);
  const ForestShape shape{.features = 3, .trees = 20, .max_leaves = 31};
  const Forest forest = random_forest(shape, rng);
  std::vector<double> rows(30 * 3);
  for (double& value : rows) {
    value = sample_value(shape, rng);
  }
  for (std::size_t i = 0; i < 30; ++i) {
    rows[3 * i + 1] = 0.25;
  }
  for (const Attribution& part : attribute_paths(forest, rows, std::vector<std::size_t>{0, 7})) {
    EXPECT_NEAR(part.of_feature[1], 0, 1e-12);
  }
}

TEST(Attribution, OneRowIsItsOwnMeanAndATreeOfOneLeafHasOnlyABase) {
  Forest forest = two_splits();
  forest.trees.push_back({.first_node = 2, .node_count = 0, .first_leaf = 3, .leaf_count = 1});
  forest.leaf_value.push_back(0.5);
  const auto parts =
      attribute_paths(forest, std::vector<double>{1, 1}, std::vector<std::size_t>{0});
  EXPECT_DOUBLE_EQ(parts[0].base, 8.5);
  EXPECT_EQ(parts[0].of_feature, (std::vector<double>{0, 0}));
  EXPECT_TRUE(attribute_paths(forest, {}, {}).empty());
}

}  // namespace
}  // namespace foretune
