#include "foretune/model/forest/forest.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "foretune/model/forest/internal/forest_coding.h"
#include "foretune/model/forest/testing/forest_samples.h"

namespace foretune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One split on one feature; left leaf 1, right leaf 2.
Forest stump(double threshold, Forest::Missing missing, bool default_left) {
  Forest forest;
  forest.feature_count = 1;
  forest.trees = {{0, 1, 0, 2}};
  forest.feature = {0};
  forest.threshold = {threshold};
  forest.left = {~0};
  forest.right = {~1};
  forest.default_left = {default_left ? std::uint8_t{1} : std::uint8_t{0}};
  forest.missing = {missing};
  forest.leaf_value = {1, 2};
  return forest;
}

double at(const Forest& forest, double value) {
  return predict_reference(forest, std::array{value});
}

TEST(ForestReference, ComparesWithTheThresholdIncluded) {
  const Forest forest = stump(0.5, Forest::Missing::kNone, false);
  EXPECT_EQ(at(forest, 0.5), 1);
  EXPECT_EQ(at(forest, std::nextafter(0.5, 1.0)), 2);
  EXPECT_EQ(at(forest, -std::numeric_limits<double>::infinity()), 1);
  EXPECT_EQ(at(forest, std::numeric_limits<double>::infinity()), 2);
}

TEST(ForestReference, TreatsNanAsZeroUnlessItHasItsOwnWay) {
  EXPECT_EQ(at(stump(0.5, Forest::Missing::kNone, false), kNan), 1);
  EXPECT_EQ(at(stump(-0.5, Forest::Missing::kNone, true), kNan), 2);
  EXPECT_EQ(at(stump(0.5, Forest::Missing::kZero, false), kNan), 2);
  EXPECT_EQ(at(stump(-0.5, Forest::Missing::kZero, true), kNan), 1);
  EXPECT_EQ(at(stump(0.5, Forest::Missing::kNan, false), kNan), 2);
  EXPECT_EQ(at(stump(-0.5, Forest::Missing::kNan, true), kNan), 1);
}

TEST(ForestReference, SendsZerosTheDefaultWayOnlyWhenZeroIsMissing) {
  for (const double zero : {0.0, -0.0, 1e-36, -1e-36, kForestZero, -kForestZero}) {
    EXPECT_EQ(at(stump(0.5, Forest::Missing::kZero, false), zero), 2) << zero;
    EXPECT_EQ(at(stump(0.5, Forest::Missing::kNan, false), zero), 1) << zero;
    EXPECT_EQ(at(stump(0.5, Forest::Missing::kNone, false), zero), 1) << zero;
    // Counts as exactly zero in comparisons too.
    EXPECT_EQ(at(stump(-1e-37, Forest::Missing::kNone, false), zero), 2) << zero;
  }
  EXPECT_EQ(at(stump(0.5, Forest::Missing::kZero, false), 2e-35), 1);
}

TEST(ForestReference, LooksCategoriesUpAsLightgbmDoes) {
  Forest forest = stump(1, Forest::Missing::kCategorical, false);
  forest.categories = {.end = {1, 3}, .words = {0xffffffff, 0b101, 1U << 31U}};
  ASSERT_TRUE(forest.validate());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double inside : {0.0, -0.0, 0.99, -0.99, 1e-320, 2.0, 2.5, 63.0, 63.9}) {
    EXPECT_EQ(at(forest, inside), 1) << inside;
  }
  for (const double outside : {1.0, 3.0, 62.0, 64.0, 1e6, 2147483647.0, 2147483648.0, 4294967296.0,
                               1e300, kInfinity, -1.0, -2.0, -1e300, -kInfinity, kNan}) {
    EXPECT_EQ(at(forest, outside), 2) << outside;
  }
  forest.default_left = {1};
  EXPECT_EQ(at(forest, kNan), 1);
  EXPECT_EQ(at(forest, -1), 2);
}

TEST(ForestReference, AddsTreesInOrder) {
  Forest forest;
  forest.feature_count = 0;
  forest.trees = {{0, 0, 0, 1}, {0, 0, 1, 1}, {0, 0, 2, 1}};
  forest.leaf_value = {1e16, 1.0, -1e16};
  ASSERT_TRUE(forest.validate());
  EXPECT_EQ(predict_reference(forest, {}), (1e16 + 1.0) - 1e16);
}

struct Damage {
  const char* what;
  std::function<void(Forest&)> apply;
};

TEST(ForestValidate, RefusesEveryKindOfDamage) {
  Rng rng(7);
  const Forest good = random_forest({.trees = 3, .max_leaves = 9, .vary_leaves = false}, rng);
  ASSERT_TRUE(good.validate());
  const std::array damages{
      Damage{"shorter thresholds", [](Forest& f) { f.threshold.pop_back(); }},
      Damage{"shorter leaves", [](Forest& f) { f.leaf_value.pop_back(); }},
      Damage{"extra leaf", [](Forest& f) { f.leaf_value.push_back(1); }},
      Damage{"missing tree", [](Forest& f) { f.trees.pop_back(); }},
      Damage{"gap", [](Forest& f) { f.trees[1].first_node += 1; }},
      Damage{"leaf count", [](Forest& f) { f.trees[1].leaf_count += 1; }},
      Damage{"huge node count", [](Forest& f) { f.trees[2].node_count = UINT32_MAX; }},
      Damage{"feature", [](Forest& f) { f.feature[3] = 6; }},
      Damage{"feature count", [](Forest& f) { f.feature_count = UINT32_MAX; }},
      Damage{"nan threshold", [](Forest& f) { f.threshold[0] = kNan; }},
      Damage{"infinite leaf",
             [](Forest& f) { f.leaf_value[0] = std::numeric_limits<double>::infinity(); }},
      Damage{"missing type", [](Forest& f) { f.missing[0] = static_cast<Forest::Missing>(4); }},
      Damage{"default", [](Forest& f) { f.default_left[0] = 2; }},
      Damage{"cycle", [](Forest& f) { f.left[0] = 0; }},
      Damage{"two parents", [](Forest& f) { f.left[0] = f.right[0]; }},
      Damage{"child too large", [](Forest& f) { f.left[0] = 8; }},
      Damage{"leaf too large", [](Forest& f) { f.left[0] = ~9; }},
      Damage{"least child", [](Forest& f) { f.left[0] = INT32_MIN; }}};
  for (const Damage& damage : damages) {
    Forest forest = good;
    damage.apply(forest);
    const Status status = forest.validate();
    EXPECT_FALSE(status) << damage.what;
    EXPECT_FALSE(status || status.error().message.empty()) << damage.what;
  }
}

TEST(ForestValidate, RefusesDamagedSetsOfCategories) {
  Forest good = stump(1, Forest::Missing::kCategorical, false);
  good.categories = {.end = {1, 3}, .words = {1, 2, 3}};
  ASSERT_TRUE(good.validate());
  const std::array damages{
      Damage{"no such set", [](Forest& f) { f.threshold = {2}; }},
      Damage{"set below zero", [](Forest& f) { f.threshold = {-1}; }},
      Damage{"half a set", [](Forest& f) { f.threshold = {0.5}; }},
      Damage{"infinite set",
             [](Forest& f) { f.threshold = {std::numeric_limits<double>::infinity()}; }},
      Damage{"descending ends", [](Forest& f) { f.categories.end = {3, 1}; }},
      Damage{"end after the words", [](Forest& f) { f.categories.end = {1, 4}; }},
      Damage{"words of no set", [](Forest& f) { f.categories.end = {1, 2}; }},
      Damage{"sets of no node", [](Forest& f) { f.missing = {Forest::Missing::kNan}; }}};
  for (const Damage& damage : damages) {
    Forest forest = good;
    damage.apply(forest);
    EXPECT_FALSE(forest.validate()) << damage.what;
  }
}

TEST(ForestValidate, RefusesNodesThatTheRootDoesNotReach) {
  Forest forest;
  forest.feature_count = 1;
  forest.trees = {{0, 3, 0, 4}};
  forest.feature = {0, 0, 0};
  forest.threshold = {1, 2, 3};
  forest.left = {~0, 2, 1};
  forest.right = {~1, ~2, ~3};
  forest.default_left = {0, 0, 0};
  forest.missing.assign(3, Forest::Missing::kNone);
  forest.leaf_value = {1, 2, 3, 4};
  EXPECT_FALSE(forest.validate());
}

TEST(ForestCoding, ReturnsTheSameForest) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  for (const ForestShape& shape :
       {ForestShape{}, ForestShape{.max_leaves = 1}, ForestShape{.trees = 0},
        ForestShape{.max_leaves = 200, .vary_leaves = false, .levels = 0},
        ForestShape{.max_leaves = 60, .chains = true}, ForestShape{.sets = 9}}) {
    Forest forest = random_forest(shape, rng);
    if (!forest.threshold.empty()) {
      forest.threshold[0] = -0.0;
    }
    ByteWriter writer;
    put_forest(writer, forest);
    ByteReader reader(writer.bytes());
    const auto read = get_forest(reader);
    ASSERT_TRUE(read.has_value()) << read.error().message << ", seed " << kSeed;
    EXPECT_EQ(*read, forest) << "seed " << kSeed;
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(ForestCoding, KeepsTreesThatDidNotGrowLeafByLeaf) {
  Rng rng(12);
  Forest forest = random_forest({.trees = 1, .max_leaves = 8, .vary_leaves = false}, rng);
  for (std::int32_t* side : {forest.left.data(), forest.right.data()}) {
    for (std::size_t node = 0; node < 7; ++node) {
      side[node] = side[node] < 0 ? ~(7 - ~side[node]) : side[node];  // leaves numbered backwards
    }
  }
  ASSERT_TRUE(forest.validate());
  ByteWriter writer;
  put_forest(writer, forest);
  ByteReader reader(writer.bytes());
  const auto read = get_forest(reader);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, forest);
}

TEST(ForestCoding, TruncatedBytesAreRefused) {
  Rng rng(13);
  const Forest forest =
      random_forest({.trees = 2, .max_leaves = 6, .vary_leaves = false, .sets = 3}, rng);
  ByteWriter writer;
  put_forest(writer, forest);
  for (std::size_t size = 0; size < writer.size(); ++size) {
    ByteReader reader(writer.bytes().first(size));
    EXPECT_FALSE(get_forest(reader).has_value()) << size;
  }
}

// Trees that grew leaf by leaf are not looked through again when they are read; all else is.
TEST(ForestCoding, WhatIsNotValidIsRefused) {
  Rng rng(14);
  for (const std::uint32_t leaves : {9U, 90U}) {
    const Forest good =
        random_forest({.trees = 3, .max_leaves = leaves, .vary_leaves = false}, rng);
    const std::array damages{
        Damage{"none", [](Forest&) {}},
        Damage{"feature", [](Forest& f) { f.feature[3] = 6; }},
        Damage{"feature count", [](Forest& f) { f.feature_count = 1U << 21U; }},
        Damage{"nan threshold", [](Forest& f) { f.threshold[0] = kNan; }},
        Damage{"no such set", [](Forest& f) { f.missing[1] = Forest::Missing::kCategorical; }},
        Damage{"infinite leaf",
               [](Forest& f) { f.leaf_value[0] = std::numeric_limits<double>::infinity(); }},
        Damage{"not a tree", [](Forest& f) { f.left[0] = f.right[0] = ~0; }}};
    for (const Damage& damage : damages) {
      Forest forest = good;
      damage.apply(forest);
      ByteWriter writer;
      put_forest(writer, forest);
      ByteReader reader(writer.bytes());
      EXPECT_EQ(get_forest(reader).has_value(), forest.validate().has_value()) << damage.what;
      EXPECT_EQ(forest.validate().has_value(), &damage == damages.data()) << damage.what;
    }
  }
}

}  // namespace
}  // namespace foretune
