// What a model says about one problem: candidates in its order, with times and rates where the
// model knows them, how sure it is of its pick, and why it prefers it.
//
//   FORETUNE_TRY(const Prediction prediction, predict(*selector, problem, {.top = 5}));
//   print(prediction_text(prediction, color));
//
// Times exist only for models of absolute time (target "log"); a relative model knows ratios within
// a problem and nothing else.
//
// Confidence is the chance that the pick is really faster than another candidate, when the errors
// of both predictions are independent and normal with the model's held-out residual s (of ln time):
// Phi(margin / (s * sqrt(2))), margin = ln(predicted time of the other / that of the pick). Errors
// of similar configs go together, so where candidates are alike the true chance is higher.
//
// Thread safety: free functions. Cost: one ranking of the pool; an explanation evaluates the
// forests' trees row by row, a few seconds for thousands of candidates and trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/models/infer/training_range.h"
#include "foretune/problem/problem.h"
#include "foretune/select/select.h"

namespace foretune {

// Fields that cannot be said are NaN.
struct PredictedConfig {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t candidate = 0;  // position in the model's pool
  std::string config;
  double score = 0;
  double slower = 0;             // predicted time / that of the first in the list - 1
  double confidence = kUnknown;  // that the first in the list is faster; of the first: none
  double time_ns = kUnknown;
  // The time lies between them in 95 of 100 cases, if the model's error is normal and what it
  // states of itself; unknown without a time or a stated error.
  double time_low_ns = kUnknown;
  double time_high_ns = kUnknown;
  double tflops = kUnknown;
  double gb_per_s = kUnknown;
  // For a model of several metrics: one for each of Prediction::metrics.
  std::vector<PredictedMetric> metrics;
  bool keeps_bounds = true;  // of the objective, by what is predicted
};

// Why the first of the list is preferred to the second.
struct FeatureEffect {
  std::string feature;
  std::string description;
  double of_first = 0;  // the feature's values
  double of_second = 0;
  double log_ratio = 0;  // its part of ln(predicted time of the second / that of the first)
};
// Candidates that one rule forbids here. Each counts for the first rule that it breaks.
struct RuledOut {
  std::string reason;
  std::string example;  // one of them, with the values that break the rule
  std::size_t candidates = 0;
};
// What weighs most against one candidate of the list, or for it where log_ratio is negative.
struct MainEffect {
  std::string feature;
  double log_ratio = 0;
};
struct Explanation {
  std::vector<FeatureEffect> effects;   // all that differ from 0, largest first
  std::vector<MainEffect> main_effect;  // per entry of Prediction::ranked from the second on
  std::vector<RuledOut> ruled_out;      // most candidates first
  std::size_t represented = 0;          // legal, but another candidate means the same here
};

struct Prediction {
  std::string problem;
  Choice choice;
  std::string choice_text;  // config of choice.candidate; empty when there is none
  std::string reason;       // why nothing was picked, as Selector::explain() says it; else empty
  std::vector<OutsideRange> outside;
  std::vector<PredictedConfig> ranked;  // the first `top`; of abstentions too
  std::size_t legal = 0;                // candidates that could be ranked
  std::size_t pool = 0;
  // How many configs were generated for this problem and scored (select/generate.h); 0: the pool is
  // the model's own.
  std::size_t generated = 0;
  bool is_absolute = false;
  double residual_std = 0;  // 0: unknown
  // Of the first over the second of the list; NaN when nothing else is legal, the confidence also
  // when the residual is unknown.
  double margin = PredictedConfig::kUnknown;
  double confidence = PredictedConfig::kUnknown;
  std::optional<Explanation> explanation;
  Fingerprint machine;  // that the model was trained on
  // What scores are of: the objective's target, or the model's first metric.
  ScoreColumn target;
  std::vector<ScoreColumn> metrics;  // of a model of several metrics: all
  std::string objective;             // that was followed; may be empty
  std::size_t feasible = 0;          // legal candidates that are predicted to keep its bounds
  // With a Pareto objective: how many of those no other is predicted to beat everywhere. `ranked`
  // is then of them, by their first target, and the pick is the knee.
  std::optional<std::size_t> front;
};

struct PredictOptions {
  std::size_t top = 5;
  bool explain = false;
};

// Follows the objective of the selector, if it has one. Errors: kMismatch for a problem of another
// type.
Result<Prediction> predict(const Selector& selector, const Problem& problem,
                           const PredictOptions& options);

// What the model predicts of the configs that a Pareto objective trades off. The selector follows
// none. Errors: as predict(), and those of judge_of() (models/infer/objective_scorer.h).
Result<Prediction> predict_front(const Selector& selector, const Problem& problem,
                                 const Objective& objective, const PredictOptions& options);

// At most 100 columns where configs are not longer than that; ANSI colours when `color`.
std::string prediction_text(const Prediction& prediction, bool color);
// docs/predict-and-search.md lists the fields.
std::string prediction_json(const Prediction& prediction, const std::string& command);

}  // namespace foretune
