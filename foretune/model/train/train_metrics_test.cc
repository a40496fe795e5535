#include "foretune/model/train/train_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "foretune/base/statistics.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/testing/training_samples.h"

namespace foretune {
namespace {

// Tiles of 64 rows or fewer are not packed.
double pack_ns(const Problem& problem, const Config& config) {
  const GemmProblem gemm = *GemmProblem::from(problem);
  const auto area = static_cast<double>(gemm.sizes().n) * static_cast<double>(gemm.sizes().k);
  return config.words[0] <= 64 ? 0 : area / (4 + config.words[1] / 16.0);
}

// Small tiles have little, whatever the problem.
double quality(const Config& config) {
  return 70 + 5 * std::log2(static_cast<double>(config.words[0])) -
         2 * std::log2(static_cast<double>(config.words[1]));
}

Dataset three_metrics(std::size_t problems, std::uint64_t seed) {
  const Dataset timed = dataset_of(problems, seed, &formula_ns);
  Dataset out(timed.header());
  for (RowIndex i = 0; i < timed.size(); ++i) {
    Measurement measurement = timed.measurement(i);
    set_metrics(measurement, {{"pack_ns", pack_ns(measurement.problem, measurement.config)},
                              {"qos_tune", quality(measurement.config)}});
    out.add(measurement);
  }
  return out;
}

const ModelTypeEntry& boosted() { return *model_types().front(); }

double figure(const TrainResult& result, std::string_view name) {
  const auto found = std::find_if(result.metrics.begin(), result.metrics.end(),
                                  [&](const auto& metric) { return metric.first == name; });
  EXPECT_NE(found, result.metrics.end()) << name;
  return found == result.metrics.end() ? kNotANumber : found->second;
}

TEST(TrainMetrics, LearnsEveryMetricAndItsValues) {
  const Dataset dataset = three_metrics(60, 3);
  const std::vector<std::string> metrics{"time_ns", "pack_ns", "qos_tune"};
  const auto result = train_metrics(dataset, boosted(), quick_options(), metrics);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  ASSERT_TRUE(check_model(result->model)) << check_model(result->model).error().message;
  EXPECT_GT(figure(*result, "time_ns_mean_efficiency"), 0.9);
  EXPECT_GT(figure(*result, "pack_ns_mean_efficiency"), 0.95);
  EXPECT_GT(figure(*result, "qos_tune_mean_efficiency"), 0.95);
  EXPECT_GT(figure(*result, "time_ns_spearman_mean"), 0.9);
  EXPECT_GT(figure(*result, "qos_tune_spearman_mean"), 0.95);
  EXPECT_LT(figure(*result, "time_ns_median_relative_error"), 0.25);
  EXPECT_LT(figure(*result, "qos_tune_median_relative_error"), 0.02);
  const Model& model = result->model;
  ASSERT_EQ(metrics_of(model).size(), 3U);
  EXPECT_EQ(metrics_of(model)[0].scale.kind, ValueScale::Kind::kLog);
  EXPECT_EQ(metrics_of(model)[1].scale.kind, ValueScale::Kind::kOffsetLog);
  EXPECT_EQ(metrics_of(model)[2].scale.kind, ValueScale::Kind::kLinear);
  EXPECT_NE(model.card_json.find("\"qos_tune\""), std::string::npos);
  EXPECT_EQ(result->held_out_scores.size(), dataset.size());
  // Where nothing is packed, and of what is learned from, the value comes back.
  const Problem& problem = dataset.problems()[0];
  const double z = *score_config(*metrics_of(model)[1].model, problem, tile(16, 16));
  EXPECT_LT(metrics_of(model)[1].scale.to_value(z), 0.1 * pack_ns(problem, tile(128, 16)));
  EXPECT_EQ(model_bytes(*parse_model(model_bytes(model))), model_bytes(model));
}

TEST(TrainMetrics, PicksByObjectivesOnProblemsItNeverSaw) {
  const std::vector<std::string> metrics{"time_ns", "pack_ns", "qos_tune"};
  const auto result = train_metrics(three_metrics(80, 7), boosted(), quick_options(), metrics);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  Dataset unseen = three_metrics(40, 8);
  unseen.mutable_header().role = DatasetRole::kValidation;
  const auto judged = [&](std::string_view text) {
    auto out = evaluate_objective(result->model, unseen, *Objective::parse(text), {});
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return *std::move(out);
  };
  EXPECT_GT(judged("minimise time_ns").model.mean_efficiency.value, 0.9);
  const Evaluation bounded = judged("minimise time_ns subject to pack_ns <= 100 us");
  EXPECT_GT(bounded.model.mean_efficiency.value, 0.85);
  EXPECT_LE(bounded.missed_bounds, bounded.model.problems / 10);
  const Evaluation quality = judged("minimise time_ns subject to qos_tune >= 91");
  EXPECT_GT(quality.model.mean_efficiency.value, 0.85);
  EXPECT_LE(quality.missed_bounds, quality.model.problems / 20);
  EXPECT_GT(judged("maximise qos_tune").model.mean_efficiency.value, 0.97);
  const auto fronts = evaluate_fronts(result->model, unseen,
                                      *Objective::parse("pareto time_ns pack_ns qos_tune"), {});
  ASSERT_TRUE(fronts.has_value()) << fronts.error().message;
  EXPECT_GT(fronts->mean_share, 0.9);
  EXPECT_GT(fronts->min_share, 0.6);
}

TEST(TrainMetrics, OfTimeAloneIsTheModelOfItsLogarithm) {
  const Dataset dataset = three_metrics(25, 4);
  TrainOptions options = quick_options();
  const std::vector<std::string> metrics{"time_ns"};
  const auto result = train_metrics(dataset, boosted(), options, metrics);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  options.target = Target::kLog;
  const auto plain = train_gbdt(dataset, options);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(forests_of(*metrics_of(result->model)[0].model), forests_of(plain->model));
  EXPECT_EQ(result->model.pool, plain->model.pool);
  EXPECT_EQ(result->model.portfolio, plain->model.portfolio);
  EXPECT_EQ(result->model.domain, plain->model.domain);
  EXPECT_EQ(result->model.target, "log");
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    EXPECT_EQ(result->held_out_scores[i], plain->held_out_scores[i]);
  }
}

TEST(TrainMetrics, KnowsOnlyProblemsWhereAllMetricsAre) {
  const Dataset all = three_metrics(30, 5);
  Dataset dataset(all.header());
  for (RowIndex i = 0; i < all.size(); ++i) {
    Measurement measurement = all.measurement(i);
    if (all.rows()[i].problem >= 20) {
      measurement.metrics.resize(1);
    }
    dataset.add(measurement);
  }
  const std::vector<std::string> metrics{"time_ns", "pack_ns"};
  TrainOptions options = quick_options();
  options.folds = 0;
  options.gbdt.trees = 20;
  const auto result = train_metrics(dataset, boosted(), options, metrics);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const Model& model = result->model;
  EXPECT_EQ(model.domain, metrics_of(model)[1].model->domain);
  EXPECT_NE(model.domain, metrics_of(model)[0].model->domain);
  EXPECT_EQ(*parse_model(model_bytes(model)), model);
}

TEST(TrainMetrics, RefusesWithTheReason) {
  const Dataset dataset = three_metrics(5, 6);
  TrainOptions options = quick_options();
  options.folds = 0;
  options.gbdt.trees = 5;
  const auto expect = [&](std::vector<std::string> metrics, ErrorCode code,
                          std::string_view reason) {
    const auto result = train_metrics(dataset, boosted(), options, metrics);
    ASSERT_FALSE(result.has_value()) << reason;
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().message.find(reason), std::string::npos) << result.error().message;
  };
  expect({}, ErrorCode::kInvalidArgument, "at least one");
  expect({"time_ns", "time_ns"}, ErrorCode::kInvalidArgument, "twice");
  expect({"time_ns", "energy_j"}, ErrorCode::kNotFound, "it has time_ns, pack_ns, qos_tune");
  options.target = Target::kTflops;
  expect({"time_ns"}, ErrorCode::kInvalidArgument, "tflops");
}

}  // namespace
}  // namespace foretune
