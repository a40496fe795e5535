// Checks that an earlier model can be continued, and returns its forests. Internal.
// Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

// Returns the objective on the model's card, or kRegression where it has none.
TrainObjective objective_of(const Model& model);

// Returns the forests of `options.warm_start` as predictions of the target, without the factor that
// made them scores. Errors: kMismatch with all differences: family, problem and config schema,
// feature table and its columns, its numbers of the device, target, logarithm, objective, number of
// forests; kCorrupt for a damaged card.
Result<std::vector<Forest>> warm_forests(const Dataset& dataset, const FeatureTable& table,
                                         const TrainOptions& options);

}  // namespace foretune::train_internal
