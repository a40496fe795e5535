// What an earlier model must have in common with the one that continues it. Internal.
// Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/train/trainer.h"

namespace foretune::train_internal {

// What the model minimised, as its card says; kRegression where that says nothing.
TrainObjective objective_of(const Model& model);

// The forests of `options.warm_start` as predictions of what is learned: without the factor that
// made them scores. Errors: kMismatch with all that differs: family, problem and config schema,
// feature table and its columns, target, logarithm, objective, number of forests.
Result<std::vector<Forest>> warm_forests(const Dataset& dataset, const FeatureTable& table,
                                         const TrainOptions& options);

}  // namespace foretune::train_internal
