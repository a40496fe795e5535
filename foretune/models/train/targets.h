// What a model may learn of a measurement, and how its predictions become scores. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/models/train/trainer.h"
#include "foretune/models/train/training_set.h"

namespace foretune::train_internal {

// One value per example of the training set.
struct Learned {
  Target target = Target::kRelativeLog;
  std::vector<float> value;
  bool log1p = false;  // values are ln(1 + value in the target's unit)
  bool larger_is_better = false;
};

// tflops: 10^12 operations a second; latency: milliseconds; bandwidth: 10^9 bytes a second, each
// operand once. Of a censored row the value at its bound: the slowest that it can be said to be.
// Errors: kUnsupported where no operations and bytes of a problem are known.
Result<Learned> learned_values(const Dataset& dataset, const TrainingSet& set, Target target,
                               bool log_transform);

// -1 where larger predictions are better, else 1.
double score_sign(const Learned& learned, TrainObjective objective);

// Whether predictions are logarithms of time, so that they are scores as they are.
bool predicts_log_time(const Learned& learned, TrainObjective objective);

// score = factor * prediction, so that lower is better and differences are, as well as one factor
// can make them, log ratios of time: the slope, within problems, of ln(time) on the prediction
// (least squares over the rows with a finite prediction that ran to the end). 1 where
// predicts_log_time(); of the sign that turns the order right where no slope can be told.
double score_factor(const TrainingSet& set, const Learned& learned, TrainObjective objective,
                    std::span<const double> predictions);

}  // namespace foretune::train_internal
