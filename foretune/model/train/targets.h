// The quantities that a model may learn from a measurement, and the conversion of its predictions
// into scores. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

// One value per example of the training set.
struct Learned {
  Target target = Target::kRelativeLog;
  std::vector<float> value;
  bool log1p = false;  // values are ln(1 + value in the target's unit)
  bool larger_is_better = false;
};

// tflops: 10^12 operations a second; latency: milliseconds; bandwidth: 10^9 bytes a second, each
// operand once. A censored row has the value at its bound: it is known to be at least that slow.
// Errors: kUnsupported for tflops and bandwidth where the operations and bytes of a problem are
// unknown.
Result<Learned> learned_values(const Dataset& dataset, const TrainingSet& set, Target target,
                               bool log_transform);

// Returns -1 where larger predictions are better, else 1.
double score_sign(const Learned& learned, TrainObjective objective);

// True when predictions are logarithms of time, so that they are scores without a factor.
bool predicts_log_time(const Learned& learned, TrainObjective objective);

// Returns the factor in score = factor * prediction. Lower scores are better, and their differences
// are log ratios of time, as well as one factor can achieve that. The factor is the slope, within
// problems, of ln(time) on the prediction (least squares over the rows with a finite prediction
// that ran to the end). It is 1 where predicts_log_time(), and score_sign() where the slope is
// unknown or has the wrong sign.
double score_factor(const TrainingSet& set, const Learned& learned, TrainObjective objective,
                    std::span<const double> predictions);

}  // namespace foretune::train_internal
