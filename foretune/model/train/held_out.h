// Figures of held-out predictions, for trainers; reports use the module evaluate.
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

struct HeldOutMetrics {
  double mean_efficiency = 0;  // best time / time of the pick, over problems
  double p10_efficiency = 0;
  double min_efficiency = 0;
  double top5_measured_efficiency = 0;
  double rmse_log = 0;  // after removing each problem's mean error unless absolute
  double spearman_mean = 0;
  [[nodiscard]] std::vector<std::pair<std::string, double>> named() const;
};

// `scores` per example, lower is better; NaN where there is none. Censored rows count with their
// bound as a pick. Scores are logarithms of time, up to a constant per problem unless `absolute`.
HeldOutMetrics held_out_metrics(const TrainingSet& set, std::span<const double> scores,
                                bool absolute);

}  // namespace foretune::train_internal
