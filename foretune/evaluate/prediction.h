// A model's predictions for one problem: candidates in its order, with times and rates where the
// model knows them, the confidence of its pick, and the reasons for preferring it.
//
//   FORETUNE_TRY(const Prediction prediction, predict(*selector, problem, {.top = 5}));
//   print(prediction_text(prediction, color));
//
// Models of absolute time (target "log") predict times, and models of rates and latencies predict
// those, from which times follow; a relative model predicts only ratios within a problem.
//
// Confidence is the probability that the pick is really faster than another candidate, if the
// errors of both predictions are independent and normal with the model's held-out residual s (of ln
// time): Phi(margin / (s * sqrt(2))), margin = ln(predicted time of the other / that of the pick).
// Errors of similar configs are correlated, so the true probability is higher for similar
// candidates.
//
// Thread safety: free functions. Cost: one ranking of the pool; an explanation evaluates the
// forests' trees row by row, a few seconds for thousands of candidates and trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/training_range.h"
#include "foretune/problem/problem.h"
#include "foretune/select/select.h"

namespace foretune {

// Unknown fields are NaN.
struct PredictedConfig {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t candidate = 0;  // position in the model's pool
  std::string config;
  std::string kernel;  // PredictOptions::kernel_name of it; may be empty
  double score = 0;
  double slower = 0;             // predicted time / that of the first in the list - 1
  double confidence = kUnknown;  // that the first in the list is faster; unknown for the first
  double time_ns = kUnknown;
  // The 95 % interval of the time, if the model's error is normal and as stated; unknown without a
  // time or a stated error.
  double time_low_ns = kUnknown;
  double time_high_ns = kUnknown;
  double tflops = kUnknown;
  double gb_per_s = kUnknown;
  // For a model of several metrics: one for each of Prediction::metrics.
  std::vector<PredictedMetric> metrics;
  // Runs after which packing has paid beside the fastest candidate that packs nothing, for a model
  // of time_ns and pack_ns; infinite where it never does, unknown for a config that packs nothing.
  double packing_pays_after = kUnknown;
  bool keeps_bounds = true;  // of the objective, as predicted
};

// A reason why the first of the list is preferred to the second.
struct FeatureEffect {
  std::string feature;
  std::string description;
  double of_first = 0;  // the feature's values
  double of_second = 0;
  double log_ratio = 0;  // its part of ln(predicted time of the second / that of the first)
};
// Candidates that one rule forbids for this problem. Each counts for the first rule that it breaks.
struct RuledOut {
  std::string reason;
  std::string example;  // one of them, with the values that break the rule
  std::size_t candidates = 0;
};
// The largest effect against one candidate of the list, or for it where log_ratio is negative.
struct MainEffect {
  std::string feature;
  double log_ratio = 0;
};
struct Explanation {
  std::vector<FeatureEffect> effects;   // all that differ from 0, largest first
  std::vector<MainEffect> main_effect;  // per entry of Prediction::ranked from the second on
  std::vector<RuledOut> ruled_out;      // most candidates first
  std::size_t represented = 0;          // legal, but equivalent to another candidate here
};

struct Prediction {
  std::string problem;
  Choice choice;
  std::string choice_text;    // config of choice.candidate; empty when there is none
  std::string choice_kernel;  // its kernel's name, as in PredictedConfig
  std::string reason;         // why nothing was picked (Selector::explain()); else empty
  std::vector<OutsideRange> outside;
  std::vector<PredictedConfig> ranked;  // the first `top`, also when the selector abstains
  std::size_t legal = 0;                // candidates that could be ranked
  std::size_t pool = 0;
  // Number of configs generated for this problem and scored (select/generate.h); 0: the pool is the
  // model's own.
  std::size_t generated = 0;
  bool is_absolute = false;
  bool has_rates = false;   // times and rates of the list are known, whatever the model learned
  double residual_std = 0;  // 0: unknown
  // Margin and confidence of the first over the second of the list. NaN when nothing else is legal;
  // the confidence is also NaN when the residual is unknown.
  double margin = PredictedConfig::kUnknown;
  double confidence = PredictedConfig::kUnknown;
  std::optional<Explanation> explanation;
  Fingerprint machine;  // the machine of the training data
  // The quantity that scores predict: the objective's target, or the model's first metric.
  ScoreColumn target;
  std::vector<ScoreColumn> metrics;  // all metrics of a model of several
  std::string objective;             // the one that was followed; may be empty
  std::size_t feasible = 0;          // number of legal candidates predicted to keep its bounds
  // With a Pareto objective: the number of feasible candidates on the predicted Pareto front.
  // `ranked` then has these, by their first target, and the pick is the knee.
  std::optional<std::size_t> front;
};

struct PredictOptions {
  std::size_t top = 5;
  bool explain = false;
  // Returns the name of the kernel that a config is for the problem; empty when configs have no
  // such names.
  std::function<std::string(const Problem&, const Config&)> kernel_name = nullptr;
};

// Predicts a problem's candidates, by the objective of the selector if it has one. Errors:
// kMismatch for a problem of another type.
Result<Prediction> predict(const Selector& selector, const Problem& problem,
                           const PredictOptions& options);

// Predicts the configs on the Pareto front of an objective. The selector follows no objective.
// Errors: those of predict() and of judge_of() (model/objective_scorer.h).
Result<Prediction> predict_front(const Selector& selector, const Problem& problem,
                                 const Objective& objective, const PredictOptions& options);

// Replaces the times or rates of the list by those that a model of this very target ("latency",
// "tflops", "bandwidth") predicts for the configs of the list, `configs`. Errors: those of
// score_configs(), kMismatch for a model whose scores tell no such value.
Status add_predicted_target(const Model& model, const Problem& problem,
                            std::span<const Config> configs, Prediction& prediction);

}  // namespace foretune
