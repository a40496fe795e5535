#include "foretune/model/train/combine_forests.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace foretune::train_internal {
namespace {

// One tree: x0 <= limit ? low : high.
Forest stump(double limit, double low, double high) {
  Forest forest;
  forest.feature_count = 2;
  forest.trees = {{.first_node = 0, .node_count = 1, .first_leaf = 0, .leaf_count = 2}};
  forest.feature = {0};
  forest.threshold = {limit};
  forest.left = {-1};
  forest.right = {-2};
  forest.default_left = {0};
  forest.missing = {Forest::Missing::kNone};
  forest.leaf_value = {low, high};
  return forest;
}

// x1 in {category} ? 1 : 0.
Forest category_stump(std::uint32_t category) {
  Forest forest = stump(0, 1, 0);
  forest.feature = {1};
  forest.missing = {Forest::Missing::kCategorical};
  forest.categories.words = {1U << category};
  forest.categories.end = {1};
  return forest;
}

TEST(CombineForests, JoinedPredictsTheSumCategoriesIncluded) {
  const Forest first = joined(stump(1, 10, 20), category_stump(3));
  const Forest all = joined(first, joined(category_stump(5), stump(2, 100, 200)));
  ASSERT_TRUE(all.validate());
  EXPECT_EQ(all.trees.size(), 4U);
  EXPECT_EQ(predict_reference(all, std::array{0.0, 3.0}), 10 + 1 + 0 + 100);
  EXPECT_EQ(predict_reference(all, std::array{1.5, 5.0}), 20 + 0 + 1 + 100);
  EXPECT_EQ(predict_reference(all, std::array{3.0, 4.0}), 20 + 0 + 0 + 200);
}

TEST(CombineForests, NothingAddedChangesNothing) {
  Forest none;
  none.feature_count = 2;
  const Forest some = category_stump(1);
  EXPECT_EQ(joined(some, none), some);
  EXPECT_EQ(joined(none, some), some);
}

TEST(CombineForests, ScaledAndAveraged) {
  EXPECT_EQ(predict_reference(scaled(stump(1, 10, 20), -0.5), std::array{0.0, 0.0}), -5);
  const std::vector<Forest> forests{stump(1, 10, 20), stump(2, 30, 40)};
  const Forest mean = averaged(forests);
  ASSERT_TRUE(mean.validate());
  EXPECT_EQ(predict_reference(mean, std::array{1.5, 0.0}), 25);
  EXPECT_EQ(averaged(std::vector{forests[0]}), forests[0]) << "to the last bit";
}

}  // namespace
}  // namespace foretune::train_internal
