// Models of several metrics: of each a model of any type, trained on the data set seen through that
// metric (dataset/metric_view.h) with the logarithm as target, so that a prediction is a value; and
// around them one model of the kind "metrics".
//
//   FORETUNE_TRY(const TrainResult result,
//                train_metrics(dataset, *type, options, {{"time_ns", "pack_ns"}}));
//
// Thread safety: independent trainings may run at once. Cost: a training for every metric.
#pragma once

#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

// Scores, candidates of the portfolio and held_out_scores are those of the first metric. Where a
// problem counts as one that was trained on, all metrics are known. Figures begin with the name of
// their metric; `..._median_relative_error` is of its values. Nothing but `model`, `metrics`,
// `held_out_scores` and `target` is filled.
// Errors: those of the type's training, with the metric; kNotFound for a metric that the data set
// does not have; kInvalidArgument for none, for one twice, for options that ask for another target
// or a warm start, and when no measurement has them all.
Result<TrainResult> train_metrics(const Dataset& dataset, const ModelTypeEntry& type,
                                  const TrainOptions& options, std::span<const std::string> metrics,
                                  const ProgressHook& progress = nullptr);

}  // namespace foretune
