#include "foretune/evaluate/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "foretune/base/text.h"
#include "foretune/evaluate/learned_rate.h"
#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

class PredictionTest : public testing::Test {
 protected:
  Model model(std::size_t forests = 1) {
    Rng rng(5);
    return sample_model({.forests = forests}, rng);
  }
  static std::unique_ptr<Selector> selector(const Model& model) {
    auto out = Selector::create(model);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return std::move(*out);
  }
  static Prediction predicted(const Model& model, const Problem& problem,
                              const PredictOptions& options = {}) {
    auto out = predict(*selector(model), problem, options);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return out ? *std::move(out) : Prediction{};
  }
  static Problem problem() {
    return GemmProblem::create({.m = 512, .n = 256, .k = 1024, .dtype = DataType::kBf16})
        ->to_problem();
  }
};

TEST_F(PredictionTest, ListsTheSelectorsOrderAndItsPickFirst) {
  const Model sample = model();
  const auto ranked = selector(sample)->rank(problem());
  const Prediction prediction = predicted(sample, problem(), {.top = 7});
  ASSERT_TRUE(prediction.choice.picked());
  ASSERT_EQ(prediction.ranked.size(), 7U);
  EXPECT_EQ(prediction.ranked[0].candidate, prediction.choice.candidate);
  EXPECT_EQ(prediction.legal, ranked.size());
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(prediction.ranked[i].candidate, ranked[i].candidate);
    EXPECT_DOUBLE_EQ(prediction.ranked[i].slower, std::expm1(ranked[i].score - ranked[0].score));
  }
  EXPECT_EQ(predicted(sample, problem(), {.top = 100000}).ranked.size(), ranked.size());
}

TEST_F(PredictionTest, ARelativeModelHasNoTimes) {
  const Prediction prediction = predicted(model(), problem());
  EXPECT_FALSE(prediction.is_absolute);
  EXPECT_TRUE(std::isnan(prediction.ranked[0].time_ns));
  EXPECT_TRUE(std::isnan(prediction.ranked[0].tflops));
  EXPECT_NE(prediction_text(prediction, false).find("ratios within a problem"), std::string::npos);
}

TEST_F(PredictionTest, AModelOfTimesHasRatesFromTheProblemsWork) {
  Model sample = model();
  sample.target = "log";
  const Prediction prediction = predicted(sample, problem());
  const PredictedConfig& first = prediction.ranked[0];
  EXPECT_DOUBLE_EQ(first.time_ns, std::exp(first.score));
  EXPECT_DOUBLE_EQ(first.tflops * 1e12, 2.0 * 512 * 256 * 1024 / (first.time_ns * 1e-9));
  EXPECT_DOUBLE_EQ(first.gb_per_s * 1e9,
                   2.0 * (512 * 1024 + 1024 * 256 + 512 * 256) / (first.time_ns * 1e-9));
  EXPECT_NEAR(std::log(first.time_high_ns / first.time_ns), 1.96 * sample.residual_std, 1e-9);
  EXPECT_NEAR(std::log(first.time_ns / first.time_low_ns), 1.96 * sample.residual_std, 1e-9);
  const std::string text = prediction_text(prediction, false);
  EXPECT_NE(text.find("TFLOPS"), std::string::npos);
  EXPECT_NE(text.find("with a chance of 95 %"), std::string::npos);
  sample.residual_std = 0;
  EXPECT_TRUE(std::isnan(predicted(sample, problem()).ranked[0].time_low_ns));
  EXPECT_EQ(text.find("ratios within a problem"), std::string::npos);
}

TEST_F(PredictionTest, AModelOfARatePredictsItAndTheTimeThatFollows) {
  Model sample = model();
  sample.target = "tflops";
  sample.card_json = R"({"objective": "regression", "log1p": true, "score_factor": -0.5})";
  const Prediction prediction = predicted(sample, problem());
  EXPECT_TRUE(prediction.has_rates);
  EXPECT_FALSE(prediction.is_absolute);
  for (const PredictedConfig& entry : prediction.ranked) {
    EXPECT_DOUBLE_EQ(entry.tflops, std::max(0.0, std::expm1(entry.score / -0.5)));
    if (entry.tflops > 0) {
      EXPECT_DOUBLE_EQ(entry.time_ns, 2.0 * 512 * 256 * 1024 / entry.tflops * 1e-3);
    } else {
      EXPECT_TRUE(std::isnan(entry.time_ns));
    }
  }
  const std::string text = prediction_text(prediction, false);
  EXPECT_NE(text.find("TFLOPS"), std::string::npos);
  EXPECT_EQ(text.find("ratios within a problem"), std::string::npos);
  sample.target = "latency";
  sample.card_json = R"({"objective": "regression", "log1p": false, "score_factor": 2.0})";
  const PredictedConfig first = predicted(sample, problem()).ranked[0];
  EXPECT_DOUBLE_EQ(first.time_ns, std::max(0.0, first.score / 2) * 1e6);
  sample.target = "bandwidth";
  sample.card_json = R"({"objective": "regression", "log1p": false, "score_factor": -2.0})";
  const PredictedConfig widest = predicted(sample, problem()).ranked[0];
  EXPECT_DOUBLE_EQ(widest.gb_per_s, std::max(0.0, widest.score / -2));
}

TEST_F(PredictionTest, ScoresThatTellNoRateHaveNone) {
  Model sample = model();
  const auto has_rate = [&](const char* target, const char* card) {
    sample.target = target;
    sample.card_json = card;
    return learned_rate_of(sample).has_value();
  };
  EXPECT_TRUE(
      has_rate("tflops", R"({"objective": "regression", "log1p": true, "score_factor": -1})"));
  EXPECT_FALSE(has_rate("relative-log", R"({"log1p": true, "score_factor": -1})"));
  EXPECT_FALSE(
      has_rate("tflops", R"({"objective": "lambdarank", "log1p": true, "score_factor": -1})"));
  EXPECT_FALSE(has_rate("tflops", R"({"log1p": true, "score_factor": 1})"))
      << "the wrong way round";
  EXPECT_FALSE(has_rate("latency", R"({"log1p": true, "score_factor": -1})"));
  EXPECT_FALSE(has_rate("tflops", R"({"log1p": true, "score_factor": 0})"));
  EXPECT_FALSE(has_rate("tflops", R"({"score_factor": -1})"));
  EXPECT_FALSE(has_rate("tflops", R"({"log1p": true, "score_factor": "-1"})"));
  EXPECT_FALSE(has_rate("tflops", "{"));
  EXPECT_FALSE(predicted(sample, problem()).has_rates);
}

TEST_F(PredictionTest, ModelsOfFurtherTargetsReplaceTheirColumns) {
  Model sample = model();
  const auto chosen = selector(sample);
  Prediction prediction = *predict(*chosen, problem(), {.top = 3});
  std::vector<Config> configs;
  for (const PredictedConfig& entry : prediction.ranked) {
    configs.push_back(chosen->config(entry.candidate));
  }
  EXPECT_FALSE(add_predicted_target(sample, problem(), configs, prediction))
      << "ratios are no rate";
  sample.target = "latency";
  sample.card_json = R"({"objective": "regression", "log1p": false, "score_factor": 1.0})";
  ASSERT_TRUE(add_predicted_target(sample, problem(), configs, prediction));
  EXPECT_TRUE(prediction.has_rates);
  EXPECT_DOUBLE_EQ(prediction.ranked[2].time_ns, std::max(0.0, prediction.ranked[2].score) * 1e6);
  EXPECT_TRUE(std::isnan(prediction.ranked[2].tflops)) << "of which nobody spoke";
  configs.pop_back();
  EXPECT_FALSE(add_predicted_target(sample, problem(), configs, prediction));
}

TEST_F(PredictionTest, KernelsGoByTheirNames) {
  const Prediction prediction = predicted(
      model(), problem(), {.top = 2, .kernel_name = [](const Problem&, const Config& config) {
                             return concat("kernel_", config.words[0]);
                           }});
  EXPECT_EQ(prediction.choice_kernel, prediction.ranked[0].kernel);
  EXPECT_TRUE(prediction.ranked[0].kernel.starts_with("kernel_"));
  const std::string text = prediction_text(prediction, false);
  EXPECT_NE(text.find("pick: kernel_"), std::string::npos);
  EXPECT_EQ(text.find(prediction.ranked[0].config), std::string::npos);
  const auto json = nlohmann::json::parse(prediction_json(prediction, "c"));
  EXPECT_EQ(json["ranking"][1]["kernel"], prediction.ranked[1].kernel);
  EXPECT_EQ(json["ranking"][1]["config"], prediction.ranked[1].config);
}

TEST_F(PredictionTest, ListsOfProblemsHaveASummary) {
  Model sample = model();
  sample.target = "log";
  std::vector<Prediction> predictions;
  for (const std::int64_t m : {128, 512}) {
    predictions.push_back(predicted(
        sample,
        GemmProblem::create({.m = m, .n = 256, .k = 1024, .dtype = DataType::kBf16})->to_problem(),
        {.top = 2}));
  }
  const auto json = nlohmann::json::parse(predictions_json(predictions, "c"));
  const double mean = (predictions[0].ranked[0].tflops + predictions[1].ranked[0].tflops) / 2;
  EXPECT_DOUBLE_EQ(json["metrics"]["mean_tflops"].get<double>(), mean);
  EXPECT_EQ(json["metrics"]["problems"], 2);
  EXPECT_EQ(json["problems"].size(), 2U);
  EXPECT_EQ(json["problems"][1]["problem"], predictions[1].problem);
  EXPECT_EQ(json["problems"][1]["ranking"].size(), 2U);
  const std::string text = predictions_text(predictions, false);
  EXPECT_NE(text.find("2 problems, 2 with a pick"), std::string::npos) << text;
  EXPECT_NE(text.find("TFLOPS of the first: mean "), std::string::npos);
  EXPECT_NE(predictions_text({}, false).find("0 problems"), std::string::npos);
}

TEST_F(PredictionTest, ConfidenceGrowsWithTheMarginAndNeedsAResidual) {
  Model sample = model();
  const Prediction prediction = predicted(sample, problem(), {.top = 50});
  EXPECT_DOUBLE_EQ(prediction.confidence,
                   0.5 * std::erfc(-prediction.margin / (2 * sample.residual_std)));
  EXPECT_TRUE(std::isnan(prediction.ranked[0].confidence));
  EXPECT_NE(prediction_text(prediction, false).find("chance: that the first is faster, in %"),
            std::string::npos);
  for (std::size_t i = 1; i < prediction.ranked.size(); ++i) {
    EXPECT_GE(prediction.ranked[i].confidence, 0.5);
    EXPECT_GE(prediction.ranked[i].confidence, i == 1 ? 0 : prediction.ranked[i - 1].confidence);
  }
  sample.residual_std = 0;
  const Prediction unknown = predicted(sample, problem());
  EXPECT_TRUE(std::isnan(unknown.confidence));
  EXPECT_EQ(prediction_text(unknown, false).find("chance of"), std::string::npos);
  EXPECT_EQ(prediction_text(unknown, false).find("chance: "), std::string::npos);
}

TEST_F(PredictionTest, EffectsAddUpToTheMargin) {
  for (const std::size_t forests : {1U, 3U}) {
    const Prediction prediction = predicted(model(forests), problem(), {.top = 4, .explain = true});
    ASSERT_TRUE(prediction.explanation.has_value());
    double sum = 0;
    for (const FeatureEffect& effect : prediction.explanation->effects) {
      sum += effect.log_ratio;
    }
    EXPECT_NEAR(sum, prediction.margin, 1e-9);
    EXPECT_EQ(prediction.explanation->main_effect.size(), 3U);
    const FeatureTable* table = *find_feature_table("gemm-triton");
    for (const FeatureEffect& effect : prediction.explanation->effects) {
      for (std::size_t f = 0; f < feature_count(*table, FeatureKind::kProblem); ++f) {
        EXPECT_NE(effect.feature, table->columns()[f].name) << "both have the same problem";
      }
    }
  }
}

// Without hidden layers the effects of a network's inputs add up; with trees beside it those of
// both, by their shares.
TEST_F(PredictionTest, EffectsOfNetworksAreExchangesOfOneFeature) {
  Rng rng(6);
  for (const bool has_trees : {false, true}) {
    Model sample = model();
    const FeatureTable& table = **find_feature_table(sample.feature_table);
    const std::vector<Network> networks{random_chain(table, {}, rng), random_chain(table, {}, rng)};
    if (has_trees) {
      set_ensemble(sample, {forests_of(sample), networks, 0.25});
    } else {
      set_networks(sample, networks);
    }
    const Prediction prediction = predicted(sample, problem(), {.top = 2, .explain = true});
    ASSERT_TRUE(prediction.explanation.has_value());
    double sum = 0;
    for (const FeatureEffect& effect : prediction.explanation->effects) {
      sum += effect.log_ratio;
    }
    EXPECT_NEAR(sum, prediction.ranked[1].score - prediction.ranked[0].score, 1e-3);
  }
}

TEST_F(PredictionTest, ExplainsTheMarginEvenWhenOneIsListed) {
  // Trees may score the best two the same; with some problem they do not.
  Prediction prediction;
  for (std::int64_t m = 64; m < 8192 && !(prediction.margin > 0); m *= 2) {
    const Problem tall =
        GemmProblem::create({.m = m, .n = 64, .k = 512, .dtype = DataType::kBf16})->to_problem();
    prediction = predicted(model(3), tall, {.top = 1, .explain = true});
  }
  ASSERT_GT(prediction.margin, 0);
  EXPECT_EQ(prediction.ranked.size(), 1U);
  EXPECT_FALSE(prediction.explanation->effects.empty());
  EXPECT_TRUE(prediction.explanation->main_effect.empty());
}

TEST_F(PredictionTest, EveryCandidateIsRankedRuledOutOrRepresented) {
  for (const std::int64_t m : {1, 17, 512}) {
    const Problem small =
        GemmProblem::create({.m = m, .n = 31, .k = 1, .dtype = DataType::kBf16})->to_problem();
    const Prediction prediction = predicted(model(), small, {.explain = true});
    std::size_t out = prediction.explanation->represented;
    for (const RuledOut& rule : prediction.explanation->ruled_out) {
      EXPECT_NE(rule.example.find("does not hold"), std::string::npos);
      out += rule.candidates;
    }
    EXPECT_EQ(prediction.legal + out, prediction.pool);
  }
}

TEST_F(PredictionTest, AnAbstentionNamesItsReasonAndWhatLiesOutside) {
  const Problem huge =
      GemmProblem::create({.m = 2000000, .n = 64, .k = 64, .dtype = DataType::kBf16})->to_problem();
  const Prediction prediction = predicted(model(), huge, {.explain = true});
  EXPECT_EQ(prediction.choice.reason, AbstainReason::kOutsideTraining);
  ASSERT_FALSE(prediction.outside.empty());
  EXPECT_GT(prediction.outside[0].value, prediction.outside[0].high);
  const std::string text = prediction_text(prediction, false);
  EXPECT_NE(text.find("abstains: The problem lies outside"), std::string::npos) << text;
  EXPECT_NE(text.find(prediction.reason), std::string::npos) << text;
  EXPECT_GT(prediction.reason.size(), to_string(prediction.choice.reason).size());
  EXPECT_NE(text.find("fallback: "), std::string::npos);
  const auto json = nlohmann::json::parse(prediction_json(prediction, "foretune predict"));
  EXPECT_TRUE(json["pick"].is_null());
  EXPECT_TRUE(json["abstained"].is_string());
  EXPECT_TRUE(json["fallback"].is_string());
}

TEST_F(PredictionTest, NothingLegalAndOnlyOneLegalAreSaid) {
  Model sample = model();
  SpaceDefinition space = sample_space();
  space.constraints.push_back({"m > 600", "the problem is too small"});
  sample.space_text = space.text();
  const Prediction none = predicted(sample, problem(), {.explain = true});
  EXPECT_EQ(none.choice.reason, AbstainReason::kNoLegalConfig);
  EXPECT_TRUE(none.ranked.empty());
  EXPECT_TRUE(std::isnan(none.margin));
  const std::string text = prediction_text(none, false);
  EXPECT_NE(text.find("No candidate of the model is legal"), std::string::npos);
  EXPECT_NE(text.find("the problem is too small"), std::string::npos);

  Model single = model();
  single.pool.resize(4);
  space = sample_space();
  const auto words = single.pool[2].words;
  space.constraints = {
      {concat("block_m == ", words[0], " && block_n == ", words[1], " && block_k == ", words[2],
              " && num_stages == ", words[4], " && num_warps == ", words[5]),
       "it is another one"}};
  space.canonical.clear();
  single.space_text = space.text();
  const Prediction one = predicted(single, problem(), {.explain = true});
  ASSERT_EQ(one.ranked.size(), 1U);
  EXPECT_TRUE(std::isnan(one.margin));
  EXPECT_TRUE(one.explanation->effects.empty());
  EXPECT_EQ(prediction_text(one, false).find("margin"), std::string::npos);
}

TEST_F(PredictionTest, SaysAfterHowManyRunsPackingPays) {
  Rng rng(11);
  Model sample = sample_metrics_model({.candidates = 60}, rng);
  std::size_t paying = 0;
  std::size_t never = 0;
  std::size_t unpacked = 0;
  for (const double offset : {0.5, 1.0, 2.0}) {
    // Where exp(z) is below the offset, nothing is packed.
    edit_metrics(sample, [&](std::vector<MetricModel>& metrics) {
      metrics[1].scale = {.kind = ValueScale::Kind::kOffsetLog, .offset = offset};
    });
    const Prediction prediction = predicted(sample, problem(), {.top = 60});
    double without_ns = HUGE_VAL;
    for (const PredictedConfig& entry : prediction.ranked) {
      if (entry.metrics[1].value < 0.02 * entry.metrics[0].value) {
        without_ns = std::min(without_ns, entry.metrics[0].value);
      }
    }
    for (const PredictedConfig& entry : prediction.ranked) {
      if (entry.metrics[1].value < 0.02 * entry.metrics[0].value || std::isinf(without_ns)) {
        EXPECT_TRUE(std::isnan(entry.packing_pays_after));
        ++unpacked;
      } else if (entry.metrics[0].value >= without_ns) {
        EXPECT_TRUE(std::isinf(entry.packing_pays_after));
        ++never;
      } else {
        const double runs = entry.packing_pays_after;
        const double gain_ns = without_ns - entry.metrics[0].value;
        EXPECT_GE(runs * gain_ns, entry.metrics[1].value * (1 - 1e-9));
        EXPECT_LT((runs - 1) * gain_ns, entry.metrics[1].value);
        ++paying;
      }
    }
    const std::string text = prediction_text(prediction, false);
    const auto json = nlohmann::json::parse(prediction_json(prediction, "foretune predict"));
    EXPECT_EQ(text.find("packing pays") != std::string::npos, !std::isinf(without_ns));
    EXPECT_EQ(json["ranking"][0].contains("packing_pays_after_runs"),
              !std::isnan(prediction.ranked[0].packing_pays_after));
  }
  EXPECT_GT(paying, 0U);
  EXPECT_GT(never, 0U);
  EXPECT_GT(unpacked, 0U);
}

TEST_F(PredictionTest, ProblemsOfAnotherTypeAreRefused) {
  ConvSizes sizes;
  const auto conv = ConvProblem::create(sizes);
  ASSERT_TRUE(conv.has_value());
  const auto out = predict(*selector(model()), conv->to_problem(), {});
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().code, ErrorCode::kMismatch);
}

TEST_F(PredictionTest, JsonHasEveryListedConfig) {
  Model sample = model();
  sample.target = "log";
  const Prediction prediction = predicted(sample, problem(), {.top = 3, .explain = true});
  const auto json = nlohmann::json::parse(prediction_json(prediction, "foretune predict"));
  EXPECT_EQ(json["metrics"]["picked"], 1);
  EXPECT_EQ(json["ranking"].size(), 3U);
  EXPECT_TRUE(json["ranking"][0]["confidence"].is_null());
  EXPECT_DOUBLE_EQ(json["ranking"][2]["time_ns"].get<double>(), prediction.ranked[2].time_ns);
  EXPECT_EQ(json["explanation"]["main_effects"].size(), 2U);
  EXPECT_EQ(json["pick"].get<std::string>(), prediction.choice_text);
  EXPECT_TRUE(json["abstained"].is_null());
}

TEST_F(PredictionTest, ColoursChangeNothingElse) {
  const Prediction prediction = predicted(model(), problem(), {.explain = true});
  std::string colored = prediction_text(prediction, true);
  for (const std::string_view code : {"\033[0m", "\033[1m", "\033[2m", "\033[33m"}) {
    for (std::size_t at = colored.find(code); at != std::string::npos; at = colored.find(code)) {
      colored.erase(at, code.size());
    }
  }
  EXPECT_EQ(colored, prediction_text(prediction, false));
}

}  // namespace
}  // namespace foretune
