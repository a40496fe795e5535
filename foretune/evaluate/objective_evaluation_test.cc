#include "foretune/evaluate/objective_evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "foretune/base/text.h"
#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/metrics/pareto.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

// A model, and measurements of its candidates that are what it predicts, times `error`.
class ObjectiveEvaluation : public testing::Test {
 protected:
  void SetUp() override {
    Rng rng(61);
    model_ = sample_metrics_model(
        {.forests = 1, .candidates = 60, .forest = {.trees = 8, .max_leaves = 31}}, rng);
  }

  Dataset measured(double error) {
    Rng rng(62);
    DatasetHeader header;
    header.family = model_.family;
    header.problem_type = model_.problem_type;
    header.config_schema = model_.config_schema;
    header.space_text = model_.space_text;
    header.fingerprint = model_.fingerprint;
    header.role = DatasetRole::kValidation;
    Dataset out(header);
    const auto space = *CompiledSpace::create(*SpaceDefinition::parse(model_.space_text));
    for (int i = 0; i < 12; ++i) {
      const Problem problem = sample_gemm(rng);
      for (const Config& config : model_.pool) {
        if (!space->is_legal(config.words.view(), problem.fields(), model_.fingerprint.hardware) ||
            !space->is_canonical(config.words.view(), problem.fields(),
                                 model_.fingerprint.hardware)) {
          continue;
        }
        Measurement row{.problem = problem, .config = config, .context = {}};
        std::vector<std::pair<std::string_view, double>> values;
        for (const MetricModel& part : metrics_of(model_)) {
          const double z = *score_config(*part.model, problem, config) + error * rng.normal();
          values.emplace_back(part.metric.name, part.scale.to_value(z));
        }
        set_metrics(row, values);
        out.add(row);
      }
    }
    return out;
  }

  // The median of a metric of all rows, so that a bound there cuts everything in two.
  static double middle(const Dataset& dataset, std::string_view metric) {
    std::vector<double> values = metric_values(dataset, metric);
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  Model model_;
};

TEST_F(ObjectiveEvaluation, OfAModelThatIsRightFindsNothingToCriticise) {
  const Dataset dataset = measured(0);
  for (const std::string& text :
       {concat("minimise time_ns subject to pack_ns <= ", middle(dataset, "pack_ns")),
        concat("maximise qos_tune subject to time_ns <= ", middle(dataset, "time_ns")),
        std::string("minimise pack_ns")}) {
    const auto out = evaluate_objective(model_, dataset, *Objective::parse(text), {});
    ASSERT_TRUE(out.has_value()) << out.error().message;
    EXPECT_GT(out->model.min_efficiency.value, 0.9999) << text;
    EXPECT_EQ(out->missed_bounds, 0U);
    EXPECT_EQ(out->objective, Objective::parse(text)->text());
    EXPECT_GE(out->model.problems, 6U);
    EXPECT_EQ(out->facts[0].first, "objective");
    EXPECT_LT(out->rmse_log, 1e-3);
    const std::string json = report_json(*out, "test", "", model_.fingerprint);
    EXPECT_NE(json.find("\"missed_bounds\": 0"), std::string::npos);
  }
  const auto fronts =
      evaluate_fronts(model_, dataset, *Objective::parse("pareto time_ns pack_ns qos_tune"), {});
  ASSERT_TRUE(fronts.has_value()) << fronts.error().message;
  EXPECT_EQ(fronts->problems.size(), 12U);
  EXPECT_NEAR(fronts->min_share, 1, 1e-6);
}

TEST_F(ObjectiveEvaluation, AgreesWithJudgingEveryPick) {
  const Dataset dataset = measured(2);
  const double limit = middle(dataset, "pack_ns");
  const auto objective =
      *Objective::parse(concat("minimise time_ns subject to pack_ns <= ", limit));
  const auto out = evaluate_objective(model_, dataset, objective, {});
  ASSERT_TRUE(out.has_value()) << out.error().message;
  const std::vector<double> times = metric_values(dataset, "time_ns");
  const std::vector<double> packs = metric_values(dataset, "pack_ns");
  const auto rows = dataset.rows_by_problem();
  std::size_t missed = 0;
  for (std::size_t i = 0; i < out->model.problem_ids.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    std::pair<double, RowIndex> pick{best, 0};
    for (const RowIndex row : rows[out->model.problem_ids[i]]) {
      const Problem& problem = dataset.problems()[dataset.rows()[row].problem];
      const Config& config = dataset.configs()[dataset.rows()[row].config];
      const auto value = [&](std::size_t m) {
        return metrics_of(model_)[m].scale.to_value(
            *score_config(*metrics_of(model_)[m].model, problem, config));
      };
      if (packs[row] <= limit) {
        best = std::min(best, times[row]);
      }
      const double excess = std::max(0.0, value(1) - limit);
      pick = std::min(pick, {excess > 0 ? 1e9 * (1 + excess) : value(0), row});
    }
    const bool keeps = packs[pick.second] <= limit;
    missed += keeps ? 0U : 1U;
    EXPECT_NEAR(out->model.efficiency[i], keeps ? best / times[pick.second] : 0, 1e-4) << i;
  }
  EXPECT_EQ(out->missed_bounds, missed);
  EXPECT_EQ(out->model.failed, missed);
  EXPECT_GT(missed, 0U);
}

TEST_F(ObjectiveEvaluation, MeasuresTheVolumeThatPredictedFrontsKeep) {
  const Dataset dataset = measured(0.6);
  const auto pareto = *Objective::parse("pareto time_ns pack_ns");
  const auto fronts = evaluate_fronts(model_, dataset, pareto, {});
  ASSERT_TRUE(fronts.has_value()) << fronts.error().message;
  EXPECT_LT(fronts->mean_share, 0.999);
  EXPECT_GT(fronts->mean_share, 0.3);
  for (const FrontProblem& problem : fronts->problems) {
    EXPECT_GE(problem.volume_share, 0);
    EXPECT_LE(problem.volume_share, 1 + 1e-12);
    EXPECT_LE(problem.front, problem.measured);
  }
  const auto bounded = *Objective::parse(
      concat("pareto time_ns pack_ns subject to qos_tune >= ", middle(dataset, "qos_tune")));
  const auto of_bounded = evaluate_fronts(model_, dataset, bounded, {});
  ASSERT_TRUE(of_bounded.has_value());
  EXPECT_GT(of_bounded->missed, 0U);
  EXPECT_NE(fronts_text(*of_bounded, 3).find("miss a bound"), std::string::npos);
  EXPECT_EQ(merged({*fronts, *of_bounded}).problems.size(),
            fronts->problems.size() + of_bounded->problems.size());
  EXPECT_EQ(front_picks(*fronts).size(), fronts->problems.size());
}

TEST_F(ObjectiveEvaluation, OfTimeIsTheOrdinaryOne) {
  const Dataset dataset = measured(0.3);
  const auto ranked = rank_with_model(model_, dataset);
  ASSERT_TRUE(ranked.has_value());
  const auto plain = evaluate(dataset, *ranked, metrics_of(model_)[0].model.get(), {});
  const auto same = evaluate_objective(model_, dataset, Objective::time(), {});
  ASSERT_TRUE(plain.has_value() && same.has_value());
  EXPECT_EQ(plain->model.efficiency, same->model.efficiency);
  EXPECT_EQ(plain->rmse_log_absolute, same->rmse_log_absolute);
}

TEST_F(ObjectiveEvaluation, RefusesWithTheReason) {
  const Dataset dataset = measured(0.3);
  const auto refused = [&](std::string_view text, std::string_view reason) {
    const auto out = evaluate_objective(model_, dataset, *Objective::parse(text), {});
    ASSERT_FALSE(out.has_value()) << text;
    EXPECT_NE(out.error().message.find(reason), std::string::npos) << out.error().message;
  };
  refused("minimise bytes", "predicts time_ns, pack_ns, qos_tune and no bytes");
  refused("pareto time_ns pack_ns", "no single value");
  refused("minimise time_ns subject to pack_ns <= 2 * baseline", "by default");
  EXPECT_FALSE(evaluate_fronts(model_, dataset, Objective::time(), {}).has_value());
  EXPECT_FALSE(evaluate_fronts(model_, dataset,
                               *Objective::parse("pareto time_ns pack_ns subject to time_ns <= 0"),
                               {})
                   .has_value());
}

TEST_F(ObjectiveEvaluation, PredictionsShowEveryMetric) {
  const auto objective = *Objective::parse("minimise time_ns subject to qos_tune >= 80");
  const auto selector = *Selector::create(model_, {.objective = objective});
  Rng rng(63);
  const Problem problem = sample_gemm(rng);
  const auto prediction = predict(*selector, problem, {.top = 4, .explain = true});
  ASSERT_TRUE(prediction.has_value());
  ASSERT_EQ(prediction->metrics.size(), 3U);
  for (const PredictedConfig& entry : prediction->ranked) {
    EXPECT_EQ(entry.keeps_bounds, entry.metrics[2].value >= 80);
    EXPECT_DOUBLE_EQ(entry.time_ns, entry.metrics[0].value);
  }
  const std::string text = prediction_text(*prediction, false);
  EXPECT_NE(text.find("qos_tune"), std::string::npos) << text;
  EXPECT_NE(text.find("objective: minimise time_ns subject to qos_tune >= 80"), std::string::npos);
  const std::string json = prediction_json(*prediction, "");
  EXPECT_NE(json.find("\"keeps_bounds\""), std::string::npos);

  const auto plain = *Selector::create(model_);
  const auto pareto = *Objective::parse("pareto time_ns pack_ns");
  const auto front = predict_front(*plain, problem, pareto, {.top = 5});
  ASSERT_TRUE(front.has_value()) << front.error().message;
  ASSERT_TRUE(front->front.has_value());
  EXPECT_EQ(front->ranked.size(), std::min<std::size_t>(5, *front->front));
  for (std::size_t i = 1; i < front->ranked.size(); ++i) {
    EXPECT_LE(front->ranked[i - 1].metrics[0].z, front->ranked[i].metrics[0].z);
    EXPECT_GE(front->ranked[i - 1].metrics[1].z, front->ranked[i].metrics[1].z);
  }
  EXPECT_NE(prediction_text(*front, false).find("predicted front"), std::string::npos);
}

}  // namespace
}  // namespace foretune
