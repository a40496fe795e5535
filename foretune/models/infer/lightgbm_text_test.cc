#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "foretune/models/infer/forest.h"

namespace foretune {
namespace {

// As LightGBM 4.5.0 writes it, shortened to what the parser looks at and some it must skip.
constexpr std::string_view kText =
    "tree\n"
    "version=v4\n"
    "num_class=1\n"
    "num_tree_per_iteration=1\n"
    "label_index=0\n"
    "max_feature_idx=2\n"
    "objective=regression\n"
    "feature_names=a b c\n"
    "feature_infos=[0:1] none [-3:4]\n"
    "tree_sizes=400 120\n"
    "\n"
    "Tree=0\n"
    "num_leaves=3\n"
    "num_cat=0\n"
    "split_feature=2 0\n"
    "split_gain=3.5 1\n"
    "threshold=0.25000000000000006 -1.0000000180025095e-35\n"
    "decision_type=2 8\n"
    "left_child=1 -1\n"
    "right_child=-2 -3\n"
    "leaf_value=0.125 -2.5 1e-3\n"
    "leaf_weight=1 1 1\n"
    "internal_value=0 0\n"
    "is_linear=0\n"
    "shrinkage=0.1\n"
    "\n"
    "\n"
    "Tree=1\n"
    "num_leaves=1\n"
    "num_cat=0\n"
    "split_feature=\n"
    "leaf_value=7.5\n"
    "shrinkage=1\n"
    "\n"
    "\n"
    "end of trees\n"
    "\n"
    "feature_importances:\n"
    "c=1\n"
    "leaf_value=1 2 3\n";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kText);
  const std::size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

TEST(LightgbmText, ReadsTreesThresholdsAndMissingTypes) {
  const auto forest = parse_lightgbm_text(kText);
  ASSERT_TRUE(forest.has_value()) << forest.error().message;
  EXPECT_EQ(forest->feature_count, 3U);
  ASSERT_EQ(forest->trees.size(), 2U);
  EXPECT_EQ(forest->trees[0].leaf_count, 3U);
  EXPECT_EQ(forest->trees[1].node_count, 0U);
  EXPECT_EQ(forest->feature, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(forest->threshold, (std::vector<double>{0.25000000000000006, -kForestZero}));
  EXPECT_EQ(forest->left, (std::vector<std::int32_t>{1, ~0}));
  EXPECT_EQ(forest->right, (std::vector<std::int32_t>{~1, ~2}));
  EXPECT_EQ(forest->default_left, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(forest->missing,
            (std::vector<Forest::Missing>{Forest::Missing::kNone, Forest::Missing::kNan}));
  EXPECT_EQ(forest->leaf_value, (std::vector<double>{0.125, -2.5, 1e-3, 7.5}));
}

TEST(LightgbmText, AcceptsWindowsLineEnds) {
  std::string text;
  for (const char c : kText) {
    text += c == '\n' ? "\r\n" : std::string(1, c);
  }
  const auto forest = parse_lightgbm_text(text);
  ASSERT_TRUE(forest.has_value()) << forest.error().message;
  EXPECT_EQ(*forest, *parse_lightgbm_text(kText));
}

TEST(LightgbmText, AcceptsInfiniteThresholds) {
  const auto forest =
      parse_lightgbm_text(replaced("threshold=0.25000000000000006", "threshold=inf"));
  ASSERT_TRUE(forest.has_value()) << forest.error().message;
  EXPECT_EQ(forest->threshold[0], std::numeric_limits<double>::infinity());
}

TEST(LightgbmText, RefusesWithTheReason) {
  struct Case {
    std::string text;
    ErrorCode code;
    std::string_view reason;
  };
  const std::vector<Case> cases{
      {"", ErrorCode::kCorrupt, "begins with"},
      {"treee\n", ErrorCode::kCorrupt, "begins with"},
      {replaced("end of trees", ""), ErrorCode::kCorrupt, "truncated"},
      {replaced("decision_type=2 8", "decision_type=2 9"), ErrorCode::kUnsupported, "categorical"},
      {replaced("num_cat=0", "num_cat=1"), ErrorCode::kUnsupported, "categorical"},
      {replaced("is_linear=0", "is_linear=1"), ErrorCode::kUnsupported, "linear"},
      {replaced("num_class=1", "num_class=3"), ErrorCode::kUnsupported, "several outputs"},
      {replaced("objective=regression", "objective=binary sigmoid:1"), ErrorCode::kUnsupported,
       "not plain sums"},
      {replaced("objective=regression", "objective=regression sqrt"), ErrorCode::kUnsupported,
       "not plain sums"},
      {replaced("label_index=0", "average_output"), ErrorCode::kUnsupported, "random forests"},
      {replaced("threshold=0.25", "threshold=nan 0.25"), ErrorCode::kCorrupt, "threshold"},
      {replaced("threshold=0.25000000000000006", "threshold=nan"), ErrorCode::kCorrupt, "number"},
      {replaced("leaf_value=0.125 -2.5 1e-3", "leaf_value=0.125"), ErrorCode::kCorrupt,
       "leaf_value"},
      {replaced("left_child=1 -1", "left_child=0 -1"), ErrorCode::kCorrupt, "not a tree"},
      {replaced("left_child=1 -1", "left_child=1 99999999999"), ErrorCode::kCorrupt, "left_child"},
      {replaced("max_feature_idx=2", "max_feature_idx=1"), ErrorCode::kCorrupt, "feature"},
      {replaced("max_feature_idx=2", "max_feature_idx=-2"), ErrorCode::kCorrupt, "max_feature_idx"},
      {replaced("num_leaves=3", "num_leaves=0"), ErrorCode::kCorrupt, "num_leaves"},
      {replaced("num_leaves=3", "num_leaves=4000000000"), ErrorCode::kCorrupt, "leaf_value"},
      {replaced("decision_type=2 8", "decision_type=2 12"), ErrorCode::kCorrupt, "decision type"},
  };
  for (const Case& test : cases) {
    const auto forest = parse_lightgbm_text(test.text);
    ASSERT_FALSE(forest.has_value()) << test.reason;
    EXPECT_EQ(forest.error().code, test.code) << forest.error().message;
    EXPECT_NE(forest.error().message.find(test.reason), std::string::npos)
        << forest.error().message;
  }
}

TEST(LightgbmText, EveryPrefixIsRefused) {
  const std::size_t whole = kText.find("end of trees") + 12;
  for (std::size_t size = 0; size < whole; ++size) {
    EXPECT_FALSE(parse_lightgbm_text(kText.substr(0, size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace foretune
