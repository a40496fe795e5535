// After how many runs packing pays, as a model of times and packing times predicts it. Internal.
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <vector>

#include "foretune/evaluate/prediction.h"

namespace foretune::evaluate_internal {

// True for a model of time_ns and pack_ns.
bool predicts_packing(const Prediction& prediction);
// Fills in PredictedConfig::packing_pays_after of the ranked configs. `candidates` are the
// predicted metrics of all candidates. Does nothing unless predicts_packing().
void add_packing(std::span<const std::vector<PredictedMetric>> candidates, Prediction& prediction);

}  // namespace foretune::evaluate_internal
