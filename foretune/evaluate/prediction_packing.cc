#include <algorithm>
#include <cmath>

#include "foretune/evaluate/internal/packing.h"
#include "foretune/model/objective_scorer.h"

namespace foretune::evaluate_internal {

bool predicts_packing(const Prediction& prediction) {
  return column_of(prediction.metrics, kTimeNs) && column_of(prediction.metrics, kPackNs);
}

void add_packing(std::span<const std::vector<PredictedMetric>> candidates, Prediction& prediction) {
  // No prediction is exactly 0: so small a share of a run counts as no packing.
  constexpr double kNothing = 0.02;
  const auto time = column_of(prediction.metrics, kTimeNs);
  const auto pack = column_of(prediction.metrics, kPackNs);
  if (!time || !pack) {
    return;
  }
  double unpacked_ns = HUGE_VAL;
  for (const std::vector<PredictedMetric>& values : candidates) {
    if (values[*pack].value < kNothing * values[*time].value) {
      unpacked_ns = std::min(unpacked_ns, values[*time].value);
    }
  }
  for (PredictedConfig& entry : prediction.ranked) {
    const double pack_ns = entry.metrics[*pack].value;
    const double time_ns = entry.metrics[*time].value;
    if (std::isfinite(unpacked_ns) && pack_ns >= kNothing * time_ns) {
      entry.packing_pays_after = unpacked_ns > time_ns
                                     ? std::max(1.0, std::ceil(pack_ns / (unpacked_ns - time_ns)))
                                     : HUGE_VAL;
    }
  }
}

}  // namespace foretune::evaluate_internal
