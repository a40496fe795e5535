// Boosted trees and networks together: both are trained on the same folds, and the share of the
// networks in the score is the one whose picks are best on what was held out. The figures of the
// ensemble are not those of the share that was chosen on them: every fold takes the share that is
// best on the other folds.
// Thread safety: independent trainings may run at once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

// Errors: those of train_gbdt() and train_deep(); kInvalidArgument without folds.
Result<TrainResult> train_ensemble(const Dataset& dataset, const TrainOptions& options,
                                   const ProgressHook& progress = nullptr);

// Held-out scores of two models of the same data and folds, mixed as the figures of an ensemble
// are: per row of the data set, NaN where either has none. `share` is the share that is best on all
// of it.
struct MixedScores {
  std::vector<double> scores;
  double share = 0;
  std::vector<std::pair<std::string, double>> metrics;  // of the scores
};
Result<MixedScores> mix_held_out(const Dataset& dataset, const TrainResult& trees,
                                 const TrainResult& networks);

}  // namespace foretune
