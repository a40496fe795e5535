#include "foretune/interop/trees/lightgbm_text.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "foretune/formats/gzip.h"
#include "foretune/interop/trees/testing/flipped_bytes.h"
#include "foretune/interop/trees/testing/refused_trees.h"

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

std::string replaced(std::string_view from, std::string_view to,
                     std::string text = std::string(kText)) {
  const std::size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

TEST(LightgbmText, ReadsTreesThresholdsAndMissingTypes) {
  const auto model = parse_lightgbm_text(kText);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Forest* forest = &model->forest;
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
  EXPECT_EQ(forest->forest.threshold[0], std::numeric_limits<double>::infinity());
}

TEST(LightgbmText, RefusesWithTheReason) {
  const std::vector<RefusedTrees> refused{
      {"", ErrorCode::kCorrupt, "begins with"},
      {"treee\n", ErrorCode::kCorrupt, "begins with"},
      {replaced("end of trees", ""), ErrorCode::kCorrupt, "truncated"},
      {replaced("decision_type=2 8", "decision_type=2 9"), ErrorCode::kCorrupt, "set"},
      {replaced("num_cat=0", "num_cat=1"), ErrorCode::kCorrupt, "cat_boundaries"},
      {replaced("num_cat=0", "num_cat=-1"), ErrorCode::kCorrupt, "num_cat"},
      {replaced("num_cat=0", "num_cat=18446744073709551615"), ErrorCode::kCorrupt, "num_cat"},
      {replaced("num_cat=0", "num_cat=1\ncat_boundaries=0 2\ncat_threshold=1"), ErrorCode::kCorrupt,
       "cat_threshold"},
      {replaced("num_cat=0", "num_cat=1\ncat_boundaries=1 2\ncat_threshold=1 2"),
       ErrorCode::kCorrupt, "ascend"},
      {replaced("num_cat=0", "num_cat=2\ncat_boundaries=0 2 1\ncat_threshold=1"),
       ErrorCode::kCorrupt, "ascend"},
      {replaced("feature_names=a b c", "feature_names=a b"), ErrorCode::kMismatch, "2 names"},
      {replaced("tree_sizes=400 120", "tree_sizes=400 120 130"), ErrorCode::kCorrupt,
       "announces 3 trees"},
      {replaced("is_linear=0", "is_linear=1"), ErrorCode::kUnsupported, "linear"},
      {replaced("num_class=1", "num_class=3"), ErrorCode::kUnsupported, "several outputs"},
      {replaced("objective=regression", "objective=multiclass num_class:3"),
       ErrorCode::kUnsupported, "multiclass"},
      {replaced("objective=regression", "objective=binary sigmoid:0"), ErrorCode::kCorrupt,
       "sigmoid:0"},
      {replaced("threshold=0.25", "threshold=nan 0.25"), ErrorCode::kCorrupt, "threshold"},
      {replaced("threshold=0.25000000000000006", "threshold=nan"), ErrorCode::kCorrupt, "number"},
      {replaced("leaf_value=0.125 -2.5 1e-3", "leaf_value=0.125"), ErrorCode::kCorrupt,
       "leaf_value"},
      {replaced("left_child=1 -1", "left_child=0 -1"), ErrorCode::kCorrupt, "not a tree"},
      {replaced("left_child=1 -1", "left_child=1 99999999999"), ErrorCode::kCorrupt, "left_child"},
      {replaced("max_feature_idx=2", "max_feature_idx=1", replaced("feature_names=a b c\n", "")),
       ErrorCode::kCorrupt, "feature 2 of 2"},
      {replaced("max_feature_idx=2", "max_feature_idx=-2"), ErrorCode::kCorrupt, "max_feature_idx"},
      {replaced("num_leaves=3", "num_leaves=0"), ErrorCode::kCorrupt, "num_leaves"},
      {replaced("num_leaves=3", "num_leaves=4000000000"), ErrorCode::kCorrupt, "leaf_value"},
      {replaced("decision_type=2 8", "decision_type=2 12"), ErrorCode::kCorrupt, "decision type"},
  };
  expect_refused_trees(refused, [](const std::string& text) { return parse_lightgbm_text(text); });
}

TEST(LightgbmText, EveryPrefixIsRefused) {
  const std::size_t whole = kText.find("end of trees") + 12;
  for (std::size_t size = 0; size < whole; ++size) {
    EXPECT_FALSE(parse_lightgbm_text(kText.substr(0, size)).has_value()) << size;
  }
}

struct ObjectiveCase {
  std::string_view text;
  OutputTransform output;
};

TEST(LightgbmText, KnowsHowObjectivesTurnSumsIntoPredictions) {
  using Transform = OutputTransform::Kind;
  for (const ObjectiveCase& test :
       {ObjectiveCase{"regression", {}}, ObjectiveCase{"huber sqrt", {}},
        ObjectiveCase{"lambdarank", {}},
        ObjectiveCase{"regression sqrt", {Transform::kSignedSquare}},
        ObjectiveCase{"quantile sqrt", {Transform::kSignedSquare}},
        ObjectiveCase{"poisson", {Transform::kExp}}, ObjectiveCase{"tweedie", {Transform::kExp}},
        ObjectiveCase{"binary sigmoid:0.5", {Transform::kSigmoid, 0.5}},
        ObjectiveCase{"cross_entropy", {Transform::kSigmoid}},
        ObjectiveCase{"cross_entropy_lambda", {Transform::kLogOnePlusExp}}}) {
    const auto model = parse_lightgbm_text(
        replaced("objective=regression", std::string("objective=").append(test.text)));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ(model->output, test.output) << test.text;
  }
}

TEST(LightgbmText, AveragesTheTreesOfARandomForest) {
  const auto sum = parse_lightgbm_text(kText);
  const auto average = parse_lightgbm_text(replaced("label_index=0", "average_output"));
  ASSERT_TRUE(sum && average);
  const std::array row{0.0, 0.0, 1.0};
  EXPECT_EQ(predict(*average, row), predict(*sum, row) / 2);
}

// Two categorical splits that look into sets of the same content.
std::string categorical_text() {
  std::string text = replaced("decision_type=2 8", "decision_type=1 9");
  text.replace(text.find("0.25000000000000006 -1.0000000180025095e-35"), 43, "1 0");
  return text.replace(text.find("num_cat=0"), 9,
                      "num_cat=2\ncat_boundaries=0 2 3\ncat_threshold=6 0 6");
}

TEST(LightgbmText, ReadsCategoricalSplits) {
  const auto model = parse_lightgbm_text(categorical_text());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Forest& forest = model->forest;
  EXPECT_EQ(forest.missing, (std::vector<Forest::Missing>(2, Forest::Missing::kCategorical)));
  EXPECT_EQ(forest.threshold, (std::vector<double>{0, 0}));
  EXPECT_EQ(forest.categories, (CategorySets{.end = {1}, .words = {6}}));
}

TEST(LightgbmText, WritesWhatItReadsBackEqual) {
  for (const std::string& text :
       {std::string(kText), categorical_text(), replaced("label_index=0", "average_output"),
        replaced("objective=regression", "objective=binary sigmoid:0.7"),
        replaced("feature_names=a b c", "feature_names=Column_0 Column_1 Column_2")}) {
    const auto model = parse_lightgbm_text(text);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto written = to_lightgbm_text(*model);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto again = parse_lightgbm_text(*written);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(*again, *model) << *written;
  }
}

TEST(LightgbmText, DoesNotWriteWhatLightgbmCannotHold) {
  const auto good = parse_lightgbm_text(categorical_text());
  ASSERT_TRUE(good.has_value());
  TreeModel model = *good;
  model.forest.default_left[0] = 1;
  EXPECT_EQ(to_lightgbm_text(model).error().code, ErrorCode::kUnsupported);
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b"}, std::vector<std::string>{"a", "b c", "d"},
        std::vector<std::string>{"a", "", "d"}, std::vector<std::string>{"a", "b\nc", "d"}}) {
    model = *good;
    model.feature_names = names;
    const auto text = to_lightgbm_text(model);
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument) << text.error().message;
  }
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(TreeModelFile, IsKnownByContentAlsoWhenZipped) {
  const auto model = parse_lightgbm_text(kText);
  const std::vector<std::byte> zipped = formats::deflate_gzip(bytes_of(kText));
  const auto plain = parse_tree_model(bytes_of(kText));
  const auto inflated = parse_tree_model(zipped);
  ASSERT_TRUE(model && plain && inflated);
  EXPECT_EQ(*plain, *model);
  EXPECT_EQ(*inflated, *model);
  for (std::size_t size = 0; size < zipped.size(); ++size) {
    EXPECT_FALSE(parse_tree_model(std::span(zipped).first(size)).has_value()) << size;
  }
}

TEST(TreeModelFile, FlippedBytesNeverYieldAnInvalidForest) {
  expect_valid_forests_from_flipped_bytes(
      categorical_text(), 3000, 19,
      [](const std::string& text) { return parse_tree_model(bytes_of(text)); });
}

}  // namespace
}  // namespace foretune
