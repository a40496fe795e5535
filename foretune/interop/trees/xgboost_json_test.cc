#include "foretune/interop/trees/xgboost_json.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/interop/trees/testing/flipped_bytes.h"
#include "foretune/interop/trees/testing/refused_trees.h"

namespace foretune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::filesystem::path testdata(const std::string& file) {
  return std::filesystem::path(FORETUNE_SOURCE_DIR) / "foretune/interop/trees/testdata" / file;
}

std::string golden_text(const std::string& name) {
  const auto text = read_text_file(testdata("xgboost_" + name + ".json"));
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text.value_or("");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

class XgboostGolden : public testing::TestWithParam<const char*> {};

// Each line: four features, XGBoost's prediction, the values of the leaves that it took.
TEST_P(XgboostGolden, TakesTheLeavesThatXgboostTakes) {
  const auto model = parse_xgboost_json(golden_text(GetParam()));
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->feature_names, (std::vector<std::string>{"a", "b", "c", "d"}));
  ASSERT_EQ(model->forest.trees[0].leaf_count, 1U);  // the base score
  const auto table = read_text_file(testdata(concat("xgboost_", GetParam(), ".csv")));
  ASSERT_TRUE(table.has_value()) << table.error().message;
  std::size_t rows = 0;
  for (const std::string_view line : split(*table, '\n')) {
    if (line.empty()) {
      continue;
    }
    std::vector<double> cells;
    for (const std::string_view cell : split(line, ',')) {
      cells.push_back(cell == "nan" ? kNan : parse_double(cell).value());
    }
    ASSERT_EQ(cells.size(), 9U);
    const std::span row = std::span(cells).first(4);
    double sum = model->forest.leaf_value[0];
    for (std::size_t tree = 0; tree < 4; ++tree) {
      sum += cells[5 + tree];
    }
    EXPECT_EQ(predict_reference(model->forest, row), sum) << line;
    EXPECT_NEAR(predict(*model, row), cells[4], 2e-6 * std::max(1.0, std::fabs(cells[4]))) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 60U);
}

INSTANTIATE_TEST_SUITE_P(Objectives, XgboostGolden,
                         testing::Values("squared_error", "logistic", "logit_raw", "poisson",
                                         "categories", "one_category", "2_categories"),
                         [](const testing::TestParamInfo<const char*>& test) {
                           return std::string(test.param);
                         });

// One split of feature 0 at the condition; left leaf 1, right leaf 2; no base score.
std::string stump(const std::string& condition, const std::string& default_left = "0",
                  const std::string& type = "0", const std::string& categories = "[]") {
  return concat(R"({"learner":{"feature_names":[],"gradient_booster":{"model":{)"
                R"("gbtree_model_param":{"num_trees":"1"},"trees":[{"left_children":[1,-1,-1],)"
                R"("right_children":[2,-1,-1],"split_indices":[0,0,0],"split_conditions":[)",
                condition, R"(,1,2],"default_left":[)", default_left, R"(,0,0],"split_type":[)",
                type, R"(,0,0],"categories":)", categories,
                R"(,"categories_nodes":[0],"categories_segments":[0],"categories_sizes":[)",
                categories == "[]" ? 0 : 1,
                R"(],"tree_param":{"num_nodes":"3","size_leaf_vector":"1"}}]},"name":"gbtree"},)"
                R"("learner_model_param":{"base_score":"0E0","num_class":"0","num_feature":"1",)"
                R"("num_target":"1"},"objective":{"name":"reg:squarederror"}},"version":[2,1,0]})");
}

double at(const TreeModel& model, double value) { return predict(model, std::array{value}); }

TEST(XgboostJson, ComparesAsFloatsDo) {
  constexpr std::array<float, 8> kConditions{0.1F,  -0.1F,   1.0F,   0.0F,
                                             -0.0F, 3.0e38F, 1e-30F, 1e-45F};
  for (const float condition : kConditions) {
    const auto model = parse_xgboost_json(stump(concat(condition)));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    for (const float value :
         {condition, std::nextafter(condition, -INFINITY), std::nextafter(condition, INFINITY),
          0.0F, -0.0F, 1.0F, -1.0F, INFINITY, -INFINITY}) {
      if (value != 0 && std::fabs(value) < 1e-34F) {
        continue;  // counts as zero
      }
      EXPECT_EQ(at(*model, static_cast<double>(value)), value < condition ? 1 : 2)
          << value << " < " << condition;
    }
  }
}

TEST(XgboostJson, SendsMissingValuesWhereTheSplitSays) {
  for (const char* left : {"1", "true"}) {
    EXPECT_EQ(at(parse_xgboost_json(stump("0.5", left)).value(), kNan), 1);
  }
  for (const char* right : {"0", "false"}) {
    EXPECT_EQ(at(parse_xgboost_json(stump("0.5", right)).value(), kNan), 2);
  }
}

TEST(XgboostJson, SendsCategoriesOfTheSetRight) {
  for (const bool default_left : {false, true}) {
    // Version 2 writes NaN for the condition, version 3 a tiny number.
    const auto model = parse_xgboost_json(
        stump(default_left ? "NaN" : "1e-45", default_left ? "1" : "0", "1", "[33]"));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ(at(*model, 33), 2);
    EXPECT_EQ(at(*model, 33.5), 2);
    for (const double other : {0.0, 1.0, 32.0, 34.0, 1000.0, -1.0, -33.0, 1e30}) {
      EXPECT_EQ(at(*model, other), 1) << other;
    }
    EXPECT_EQ(at(*model, kNan), default_left ? 1 : 2);
  }
}

TEST(XgboostJson, RefusesWithTheReason) {
  const std::string good = golden_text("categories");
  const std::vector<RefusedTrees> refused{
      {"[]", ErrorCode::kCorrupt, "gradient_booster"},
      {"{\"learner\":3}", ErrorCode::kCorrupt, "gradient_booster"},
      {replaced(good, "\"gbtree\"", "\"gblinear\""), ErrorCode::kUnsupported, "'gblinear'"},
      {replaced(good, "\"gbtree\"", "\"dart\""), ErrorCode::kUnsupported, "'dart'"},
      {replaced(good, "reg:squarederror", "binary:hinge"), ErrorCode::kUnsupported,
       "'binary:hinge'"},
      {replaced(good, "\"num_class\":\"0\"", "\"num_class\":\"3\""), ErrorCode::kUnsupported,
       "several outputs"},
      {replaced(good, "\"num_target\":\"1\"", "\"num_target\":\"2\""), ErrorCode::kUnsupported,
       "several outputs"},
      {replaced(good, "\"size_leaf_vector\":\"1\"", "\"size_leaf_vector\":\"2\""),
       ErrorCode::kUnsupported, "several values"},
      {replaced(good, "\"num_trees\":\"4\"", "\"num_trees\":\"5\""), ErrorCode::kCorrupt,
       "announces 5 trees"},
      {replaced(good, "\"num_class\":\"0\",\"num_feature\":\"4\"",
                "\"num_class\":\"0\",\"num_feature\":\"3\""),
       ErrorCode::kMismatch, "4 names for 3"},
      {replaced(good, "\"base_score\":\"[", "\"base_score\":\"[0.5,"), ErrorCode::kCorrupt,
       "base_score"},
      {replaced(golden_text("logistic"), "\"base_score\":\"[", "\"base_score\":\"[2"),
       ErrorCode::kCorrupt, "base_score"},
      {replaced(stump("0.5"), "\"left_children\":[1", "\"left_children\":[0"), ErrorCode::kCorrupt,
       "not a tree"},
      {replaced(stump("0.5"), "\"left_children\":[1", "\"left_children\":[3"), ErrorCode::kCorrupt,
       "does not exist"},
      {replaced(stump("0.5"), "\"left_children\":[1", "\"left_children\":[2"), ErrorCode::kCorrupt,
       "two parents"},
      {replaced(stump("0.5"), "\"split_indices\":[0", "\"split_indices\":[1"), ErrorCode::kCorrupt,
       "feature 1 of 1"},
      {stump("Infinity"), ErrorCode::kCorrupt, "finite"},
      {stump("NaN"), ErrorCode::kCorrupt, "finite"},
      {replaced(stump("1"), ",1,2]", ",NaN,2]"), ErrorCode::kCorrupt, "node 1 is no finite"},
      {stump("1e39"), ErrorCode::kCorrupt, "finite"},
      {stump("\"1\""), ErrorCode::kCorrupt, "finite"},
      {stump("1", "0", "2"), ErrorCode::kUnsupported, "split type 2"},
      {stump("1", "0", "1", "[-1]"), ErrorCode::kCorrupt, "category -1"},
      {stump("1", "0", "1", "[16777216]"), ErrorCode::kCorrupt, "category 16777216"},
      {replaced(stump("1", "0", "1", "[5]"), "categories_sizes\":[1]", "categories_sizes\":[2]"),
       ErrorCode::kCorrupt, "categories of node 0"},
  };
  expect_refused_trees(refused, [](const std::string& text) { return parse_xgboost_json(text); });
}

TEST(XgboostJson, EveryPrefixIsRefused) {
  const std::string text(trim(golden_text("categories")));
  ASSERT_TRUE(parse_xgboost_json(text).has_value());
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(parse_xgboost_json(std::string_view(text).substr(0, size)).has_value()) << size;
  }
}

TEST(XgboostJson, FlippedBytesNeverYieldAnInvalidForest) {
  expect_valid_forests_from_flipped_bytes(
      golden_text("categories"), 1500, 23,
      [](const std::string& text) { return parse_xgboost_json(text); });
}

}  // namespace
}  // namespace foretune
