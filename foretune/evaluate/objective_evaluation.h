// How good are picks by an objective? With one target: the figures of evaluate.h on the data set as
// the objective sees it, where the best is the best that keeps all bounds and a pick that misses
// one has failed. With several: how much of the volume that the measured front dominates the
// model's predicted front keeps, when its configs are measured.
//
//   FORETUNE_TRY(const Evaluation evaluation,
//                evaluate_objective(model, validation, objective, options));
//   FORETUNE_TRY(const FrontEvaluation fronts, evaluate_fronts(model, validation, pareto, {}));
//
// Thread safety: free functions without state. Cost: as evaluate(); fronts prepare the measured
// configs of every problem anew.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/metrics/objective.h"
#include "foretune/model/model_file.h"

namespace foretune {

// options.default_configs say what bounds are relative to; options.training is seen by the
// objective, too. Errors: those of DatasetJudge::create(), rank_with_model() and evaluate();
// kNotFound for a metric that the model does not predict; kInvalidArgument for a Pareto objective.
Result<Evaluation> evaluate_objective(const Model& model, const Dataset& dataset,
                                      const Objective& objective, EvaluateOptions options);

// Adds the objective to an evaluation of an objective_view() of `dataset`.
void describe_objective(const Dataset& dataset, const DatasetJudge& judge, const ValueScale& scale,
                        Evaluation& evaluation);

struct FrontProblem {
  std::string problem;
  // Volume that the configs of the predicted front dominate by what was measured of them, over that
  // of the measured front: 0 to 1. Coordinates are z, so logarithms where values are positive; the
  // reference lies a tenth of the range behind the worst measured value of each.
  double volume_share = 0;
  std::size_t measured = 0;   // configs with all targets
  std::size_t front = 0;      // of those that keep the bounds
  std::size_t predicted = 0;  // on the predicted front
  std::size_t missed = 0;     // of those, that miss a bound in truth
};

struct FrontEvaluation {
  std::string objective;
  double mean_share = 0;
  double p10_share = 0;
  double min_share = 0;
  std::size_t predicted = 0;  // on all predicted fronts
  std::size_t missed = 0;
  std::size_t skipped_problems = 0;  // where no measured config keeps the bounds
  std::vector<FrontProblem> problems;
};

// Judges the measured configs of each problem. Errors: as evaluate_objective(); kInvalidArgument
// for an objective with one target, and when no problem has a front.
Result<FrontEvaluation> evaluate_fronts(const Model& model, const Dataset& dataset,
                                        const Objective& objective,
                                        const DefaultConfigs& default_configs);
// Those of several evaluations as one.
FrontEvaluation merged(std::vector<FrontEvaluation> parts);

// As pairs of models are compared by: the efficiency is the share of the volume.
std::vector<PickedProblem> front_picks(const FrontEvaluation& fronts);

}  // namespace foretune
