// After how many runs packing pays, as a model of times and packing times predicts it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "foretune/evaluate/prediction.h"

namespace foretune {
namespace {

std::optional<std::size_t> place_of(const Prediction& prediction, std::string_view metric) {
  for (std::size_t m = 0; m < prediction.metrics.size(); ++m) {
    if (prediction.metrics[m].metric.name == metric) {
      return m;
    }
  }
  return std::nullopt;
}

}  // namespace

void add_packing(const Selector& selector, const Problem& problem, Prediction& prediction) {
  // No prediction is exactly 0: so small a share of a run counts as no packing.
  constexpr double kNothing = 0.02;
  const auto time = place_of(prediction, kTimeNs);
  const auto pack = place_of(prediction, kPackNs);
  if (!time || !pack || prediction.ranked.empty()) {
    return;
  }
  std::vector<std::uint32_t> candidates;
  for (const RankedCandidate& entry : selector.rank(problem)) {
    candidates.push_back(entry.candidate);
  }
  double unpacked_ns = HUGE_VAL;
  for (const std::vector<PredictedMetric>& values : selector.predict_metrics(problem, candidates)) {
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

}  // namespace foretune
