#include "foretune/model/train/internal/base_score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

using train_internal::base_forest;
using train_internal::BasePoint;
using train_internal::kMaxBaseSteps;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Column 1 of three.
double at(const Forest& forest, double x) {
  const std::vector<double> row{-1e9, x, 1e9};
  return predict_reference(forest, row);
}

Forest fitted(std::vector<BasePoint> points) {
  Forest forest = base_forest(std::move(points), 1, 3);
  EXPECT_TRUE(forest.validate());
  EXPECT_EQ(forest.trees.size(), 1U);
  return forest;
}

TEST(BaseForest, PoolsWhatIsOutOfOrder) {
  const Forest forest = fitted({{.x = 4, .value = 7},
                                {.x = 1, .value = 1},
                                {.x = 2, .value = 5, .weight = 3},
                                {.x = 3, .value = 1}});
  // 5, three times, and 1 are 4 together.
  EXPECT_DOUBLE_EQ(at(forest, 1), 1);
  EXPECT_DOUBLE_EQ(at(forest, 2), 4);
  EXPECT_DOUBLE_EQ(at(forest, 3), 4);
  EXPECT_DOUBLE_EQ(at(forest, 4), 7);
  // Between and beyond the points.
  EXPECT_DOUBLE_EQ(at(forest, 1.5), 1);
  EXPECT_DOUBLE_EQ(at(forest, 1.51), 4);
  EXPECT_DOUBLE_EQ(at(forest, -1e300), 1);
  EXPECT_DOUBLE_EQ(at(forest, 1e300), 7);
}

TEST(BaseForest, FallsWhereFallingFitsBetter) {
  const Forest forest = fitted({{.x = 1, .value = 9}, {.x = 2, .value = 4}, {.x = 3, .value = 5}});
  EXPECT_DOUBLE_EQ(at(forest, 1), 9);
  EXPECT_DOUBLE_EQ(at(forest, 2), 4.5);
  EXPECT_DOUBLE_EQ(at(forest, 3), 4.5);
}

// No other monotone function of the same bins has a smaller error: compared with the definition by
// minima over maxima of means (Barlow and others 1972).
TEST(BaseForest, IsTheBestMonotoneFunction) {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<BasePoint> points;
    for (int i = 0; i < 60; ++i) {
      points.push_back({.x = static_cast<double>(i),
                        .value = 0.05 * i + rng.normal(),
                        .weight = 0.1 + rng.uniform()});
    }
    const auto mean_of = [&](std::size_t first, std::size_t last) {
      double sum = 0;
      double weight = 0;
      for (std::size_t i = first; i <= last; ++i) {
        sum += points[i].weight * points[i].value;
        weight += points[i].weight;
      }
      return sum / weight;
    };
    const Forest forest = fitted(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      double most = -1e300;
      for (std::size_t first = 0; first <= i; ++first) {
        double least = 1e300;
        for (std::size_t last = i; last < points.size(); ++last) {
          least = std::min(least, mean_of(first, last));
        }
        most = std::max(most, least);
      }
      ASSERT_NEAR(at(forest, points[i].x), most, 1e-9) << round << " " << i;
    }
  }
}

TEST(BaseForest, HasAtMostItsStepsAndKeepsEqualValuesTogether) {
  std::vector<BasePoint> points;
  for (int i = 0; i < 5000; ++i) {
    points.push_back({.x = static_cast<double>(i), .value = static_cast<double>(i)});
    points.push_back({.x = 17, .value = 1000});
  }
  const Forest forest = fitted(points);
  EXPECT_LE(forest.leaf_value.size(), kMaxBaseSteps);
  EXPECT_GT(forest.leaf_value.size(), kMaxBaseSteps / 4);
  // Neighbours on either side of a threshold were in other steps: none splits the value 17.
  EXPECT_DOUBLE_EQ(at(forest, 17), at(forest, std::nextafter(17.0, 0.0)));
}

TEST(BaseForest, RowsWithoutAValueHaveALeafOfTheirOwn) {
  const Forest forest = fitted({{.x = kNan, .value = 3},
                                {.x = 1, .value = 1},
                                {.x = kNan, .value = 6, .weight = 2},
                                {.x = 2, .value = 2}});
  EXPECT_DOUBLE_EQ(at(forest, kNan), 5);
  EXPECT_DOUBLE_EQ(at(forest, 1), 1);
  EXPECT_DOUBLE_EQ(at(forest, 2), 2);
  EXPECT_DOUBLE_EQ(at(forest, 1e308), 2);
  EXPECT_DOUBLE_EQ(at(fitted({{.x = kNan, .value = 3}}), 8), 3);
  EXPECT_DOUBLE_EQ(at(fitted({}), 8), 0);
}

// -- As an option of training. --------------------------------------------------------------------

TrainOptions based() {
  TrainOptions options = quick_options();
  options.base_column = "log2_estimate_ns";
  options.objective = TrainObjective::kRegression;
  options.target = Target::kLog;
  return options;
}

// Without trees to speak of, the model is the step function of the column.
TEST(BaseColumn, TheModelBeginsWithItsStepFunction) {
  const Dataset dataset = dataset_of(30, 12, formula_ns);
  TrainOptions options = based();
  options.folds = 0;
  options.gbdt.trees = 1;
  options.gbdt.learning_rate = 1e-9;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  const Forest& forest = forests_of(result->model).front();
  ASSERT_EQ(forest.trees.size(), 2U);
  const FeatureTable& table = *find_feature_table("gemm-triton").value();
  const std::vector<std::string_view> name{options.base_column};
  const std::uint16_t column = find_columns(table, name)->front();
  const std::span<const std::uint32_t> splits =
      std::span(forest.feature).first(forest.trees.front().node_count);
  EXPECT_GT(splits.size(), 20U);
  EXPECT_EQ(std::set<std::uint32_t>(splits.begin(), splits.end()), std::set<std::uint32_t>{column});
  const auto set = train_internal::make_training_set(dataset, table, options.weight_decay).value();
  std::vector<BasePoint> points;
  for (std::size_t i = 0; i < set.size(); ++i) {
    points.push_back({.x = set.matrix.values[i * set.matrix.columns + column],
                      .value = static_cast<double>(set.log_time[i]),
                      .weight = static_cast<double>(set.weight[i])});
  }
  const std::vector<double> model = train_internal::predictions_of(forest, set);
  const std::vector<double> steps = train_internal::predictions_of(
      base_forest(points, column, static_cast<std::uint32_t>(set.matrix.columns)), set);
  for (std::size_t i = 0; i < set.size(); ++i) {
    ASSERT_NEAR(model[i], steps[i], 1e-6);
  }
  EXPECT_EQ(nlohmann::json::parse(result->model.card_json)["base_feature"], "log2_estimate_ns");
}

double mean_efficiency(const TrainResult& result) {
  for (const auto& [name, value] : result.metrics) {
    if (name == "mean_efficiency") {
      return value;
    }
  }
  return 0;
}

// Few trees learn what the column leaves open, where they cannot learn everything.
TEST(BaseColumn, HelpsFewTreesOnProblemsNeverSeen) {
  const Dataset dataset = dataset_of(40, 12, formula_ns);
  TrainOptions options = based();
  options.gbdt.trees = 5;
  const auto with = train_gbdt(dataset, options);
  ASSERT_TRUE(with) << with.error().message;
  options.base_column.clear();
  const auto without = train_gbdt(dataset, options);
  ASSERT_TRUE(without);
  EXPECT_GT(mean_efficiency(*with), mean_efficiency(*without) + 0.03);
  EXPECT_EQ(nlohmann::json::parse(without->model.card_json).count("base_feature"), 0U);
}

// A fold's step function must not know the times of the problems that are held out: where nothing
// explains a problem's times, they are farther from it than those that it was fitted to.
TEST(BaseColumn, EveryFoldFitsItsOwn) {
  Rng rng(4);
  std::map<std::uint64_t, double> level;
  const Dataset dataset = dataset_of(60, 4, [&](const Problem& problem, const Config&) {
    const auto [found, is_new] = level.emplace(problem.hash(), 0.0);
    found->second = is_new ? 4 * rng.uniform() : found->second;
    return 1000 * std::exp(found->second);
  });
  TrainOptions options = based();
  options.base_column = "log2_flops";
  options.gbdt.trees = 1;
  options.gbdt.learning_rate = 1e-6;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  const FeatureTable& table = *find_feature_table("gemm-triton").value();
  const auto set = train_internal::make_training_set(dataset, table, 0).value();
  const std::vector<double> fitted_ones =
      train_internal::predictions_of(forests_of(result->model).front(), set);
  double held_out = 0;
  double trained = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto value = static_cast<double>(set.log_time[i]);
    held_out += std::pow(result->held_out_scores[set.row[i]] - value, 2);
    trained += std::pow(fitted_ones[i] - value, 2);
  }
  EXPECT_GT(held_out, 1.1 * trained);
}

TEST(BaseColumn, ForestsOfSeveralAndRatesBeginWithIt) {
  const Dataset dataset = dataset_of(20, 5, formula_ns);
  TrainOptions options = based();
  options.forests = 2;
  options.target = Target::kTflops;
  options.gbdt.trees = 30;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->score_factor, 0) << "rates fall where times rise";
  const FeatureTable& table = *find_feature_table("gemm-triton").value();
  const std::vector<std::string_view> name{options.base_column};
  for (const Forest& forest : forests_of(result->model)) {
    EXPECT_EQ(forest.feature.front(), find_columns(table, name)->front());
  }
  const auto read = parse_model(model_bytes(result->model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result->model);
}

TEST(BaseColumn, RefusesWhatItCannotBeginWith) {
  const Dataset dataset = dataset_of(6, 5, formula_ns);
  const auto refusal = [&](const TrainOptions& options) {
    const auto result = train_gbdt(dataset, options);
    return result ? std::string("trained") : result.error().message;
  };
  TrainOptions options = based();
  options.base_column = "phase_of_the_moon";
  EXPECT_NE(refusal(options).find("'phase_of_the_moon'"), std::string::npos);
  options = based();
  options.target = Target::kRelativeLog;
  options.objective = TrainObjective::kLambdaRank;
  EXPECT_NE(refusal(options).find("rank"), std::string::npos);
  options = quick_options();
  options.folds = 0;
  options.gbdt.trees = 3;
  const auto first = train_gbdt(dataset, options);
  ASSERT_TRUE(first) << first.error().message;
  options.warm_start = &first->model;
  options.base_column = "log2_estimate_ns";
  EXPECT_NE(refusal(options).find("warm start"), std::string::npos);
}

}  // namespace
}  // namespace foretune
