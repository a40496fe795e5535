// Evaluates picks: metrics over problems that the model never saw, with bootstrap intervals,
// slices, the worst cases, and baselines for comparison. Efficiency = oracle time / time of the
// pick. A failed pick counts as 0. For an unmeasured pick the best-ranked measured config stands
// in; reports state how often. docs/explanation/evaluation.md explains each number.
//
//   FORETUNE_TRY(const auto ranked, rank_with_model(model, validation));
//   FORETUNE_TRY(const Evaluation evaluation, evaluate(validation, ranked, &model, options));
//   print(report_text(evaluation, true));
//
// Thread safety: free functions without state. Cost: a few passes over the rows; ranking scores
// every measured candidate and the model's whole pool once per problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/evaluate/ck_metrics.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"

namespace foretune {

struct Interval {
  double value = 0;
  double low = 0;  // 95 % percentile bootstrap over problems
  double high = 0;
};

// One problem's candidates in the order of one scorer.
struct RankedProblem {
  std::uint32_t problem = 0;           // id in the data set
  std::vector<std::uint32_t> configs;  // config ids, best first; empty: no pick, counts as 0
  // Natural log of time, up to a constant per problem. With an objective: z of its target, infinite
  // where the model predicts a violated bound.
  std::vector<double> scores;
  // The best of the model's legal candidates was not measured, so `configs` begins with the best
  // measured one.
  bool pick_unmeasured = false;
};

// Length of PickerResult::measured_curve: measured picks per problem.
inline constexpr std::size_t kCurveLength = 16;

// The results of one way of picking. An unknown share is NaN.
struct PickerResult {
  std::string key;   // "best_single_config": for names of JSON metrics
  std::string name;  // "best single config"
  // Number of configs measured per problem, of which the fastest is kept; 1 for a pick.
  std::size_t tries = 1;
  std::size_t problems = 0;
  Interval mean_efficiency;
  Interval median_efficiency;
  Interval p10_efficiency;
  Interval min_efficiency;      // resamples contain no lower value, so only `high` is informative
  Interval geomean_efficiency;  // 0 when a pick counts as 0
  double top1_hit = 0;          // share of problems whose pick is the best or ties with it
  double top3_hit = 0;
  double top5_hit = 0;
  double top10_hit = 0;
  Interval top5_measured_efficiency;   // efficiency of the fastest measured among the first five
  std::size_t top5_judges_itself = 0;  // problems where one measurement both chooses and judges
  std::vector<double> measured_curve;  // mean efficiency when the first 1, 2, ... are measured
  std::size_t replaced = 0;  // problems where the next choice stood in for an unmeasured one
  std::size_t failed = 0;    // picks that failed or were not measured: counted as 0
  std::size_t bounds = 0;    // picks with only a lower bound of the time
  // The model's mean efficiency minus this picker's over their common problems, and the speedup of
  // the model's picks there (geometric mean). 0 and 1 for the model itself.
  Interval model_gain;
  double model_speedup = 1;
  std::vector<std::uint32_t> problem_ids;
  std::vector<double> efficiency;  // per evaluated problem
};

struct Slice {
  std::string dimension;  // "m regime"
  std::string value;      // "2 to 16"
  std::size_t problems = 0;
  double mean_efficiency = 0;
  double p10_efficiency = 0;
  double min_efficiency = 0;
};

// The efficiency of a portfolio's first configs without a model, when all of them are tried on each
// problem and the fastest is kept. A config that was not measured there, or failed, counts as 0.
struct PortfolioPoint {
  std::size_t configs = 0;
  double mean_efficiency = 0;
  double p10_efficiency = 0;
  double min_efficiency = 0;
};

struct WorstCase {
  std::string problem;
  std::string pick;
  std::string best;
  double pick_ns = 0;  // negative when there is no time
  double best_ns = 0;
  double efficiency = 0;
  std::size_t rank = 0;  // of the pick among the measured candidates; 0 when it has no time
  std::size_t candidates = 0;
  std::string note;  // "crashed", "lower bound"
};

struct PredictionPoint {  // for the report's scatter plots: natural logarithms of nanoseconds
  float predicted_log = 0;
  float measured_log = 0;
};

struct ProblemPoint {  // one problem on the report's maps
  std::string problem;
  double x = 0;
  double y = 0;
  double best_ns = 0;
  double efficiency = 0;
};

struct PickedProblem {
  std::string problem;
  std::string pick;  // config as text; empty: there was none
  double best_ns = 0;
  double efficiency = 0;
};

struct Evaluation {
  PickerResult model;
  std::vector<PickerResult> baselines;
  // Errors of the natural log of time. rmse_log excludes the constant per problem that a relative
  // model leaves open; rmse_log_absolute includes it, for models of absolute time (NaN for others).
  double rmse_log = 0;
  double rmse_log_absolute = 0;
  // Shares of the errors up to the model's stated error and up to twice that: 68.3 % and 95.4 %
  // where errors are normal and the stated error is right. For a model of absolute time these are
  // the whole errors. NaN for models without a stated error.
  double within_stated_error = std::numeric_limits<double>::quiet_NaN();
  double within_twice_stated_error = std::numeric_limits<double>::quiet_NaN();
  double spearman_mean = 0;  // mean over problems; NaN when no problem allows it
  double spearman_median = 0;
  // The metrics by the definitions of CK Tile's heuristics. Where the model leaves a constant per
  // problem open, R2 is for predictions shifted to each problem's mean.
  CkMetrics ck;
  // The model's picks when an unmeasured pick counts as 0 instead of being replaced.
  double strict_mean_efficiency = 0;
  double strict_p10_efficiency = 0;
  std::vector<PortfolioPoint> portfolio;  // 1, 2, 4, ... configs; empty when there is none
  std::vector<Slice> slices;
  std::vector<WorstCase> worst;
  std::vector<PredictionPoint> points;  // a sample
  std::vector<PickedProblem> picks;     // for all evaluated problems
  std::vector<ProblemPoint> map;
  std::string map_x;                                       // "m"
  std::string map_y;                                       // "n"
  TrainingCurves trained;                                  // of neural models
  std::vector<std::pair<std::string, std::string>> facts;  // data set, model, machine
  std::vector<std::string> warnings;
  std::size_t unmeasured_picks = 0;
  std::size_t unseen_problems = 0;     // evaluated, and not known to be in the training data
  std::size_t training_problems = 0;   // in options.training; 0 when not given
  std::size_t reference_problems = 0;  // their best was re-measured interleaved
  std::size_t skipped_problems = 0;    // in the data set: without a time, or not ranked
  // When judged by an objective: its text, and the number of picks that really violate a bound
  // (they count as failed). Times are then exp(z) of the target.
  std::string objective;
  std::size_t missed_bounds = 0;
};

struct EvaluateOptions {
  std::size_t top_n_worst = 10;
  std::size_t bootstrap_samples = 2000;
  std::uint64_t seed = 42;
  // When given, it provides the best single config, the portfolio and the nearest problem; else the
  // model provides the first two.
  const Dataset* training = nullptr;
  // For cross-validation, the fold of every problem of the evaluated data set. The baselines of a
  // problem then learn from the other folds, like the scores. Excludes `training`.
  std::vector<std::uint32_t> fold_of_problem;
  // Returns the configs that the family runs by default, best first; may be empty.
  std::function<std::vector<Config>(const Problem&)> default_configs;
};

// Returns true when features of measurements on that device are to be computed with the model's
// hardware: it is the same device, or the numbers that the makers of the model's features assume
// for it.
bool knows_device(const Model& model, const Fingerprint& measured_on);
// Returns the hardware with which the model sees a problem of the data set: that of the problem's
// machine (Dataset::machine_of()), unless the model learned from one machine and knows_device().
const Hardware& seen_hardware(const Model& model, const Dataset& dataset, const Problem& problem);

// Ranks every problem's measured configs by the model: first those that the selector may pick with
// it (its pool; a config counts as measured when an equivalent one was), then all others.
// Errors: kMismatch for another family, schema
// or feature table.
// With a judge the data set is an objective_view() by it, and picks follow its objective on each
// problem; problems without a judge are left out. Errors also: those of check_followed()
// (model/objective_scorer.h).
Result<std::vector<RankedProblem>> rank_with_model(const Model& model, const Dataset& dataset,
                                                   const DatasetJudge* judge = nullptr);
// Ranks by one score per row (held-out predictions of cross-validation); NaN means no score.
std::vector<RankedProblem> rank_with_scores(const Dataset& dataset, std::span<const double> scores);

// Evaluates the rankings. `model` may be nullptr. Problems that `ranked` leaves out are not
// evaluated.
// Errors: kInvalidArgument for ids that do not exist and when no ranked problem has a time;
// kMismatch for a training set with another config schema.
Result<Evaluation> evaluate(const Dataset& dataset, const std::vector<RankedProblem>& ranked,
                            const Model* model, const EvaluateOptions& options);

// Returns the oracle by problem id: the lowest ok time, preferring re-measured rows; negative when
// none is ok. measured_times.h has the rule.
std::vector<double> oracle_times_ns(const Dataset& dataset);

// Returns nullptr when that baseline was not evaluated.
const PickerResult* find_baseline(const Evaluation& evaluation, std::string_view key);

}  // namespace foretune
