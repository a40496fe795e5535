// Makes the contents of a model file except its forests: candidates, portfolio, ranges, identities.
// Internal.
// Thread safety: free functions without state.
#pragma once

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"
#include "foretune/space/parametric_space.h"

namespace foretune::train_internal {

// Errors: kMismatch for a validation set, since no model is trained on one.
Status check_role(const Dataset& dataset);

// Makes a model from a header and a table alone: without candidates, ranges and forests. A header
// without a space gives a space without rules.
Model model_without_data(const DatasetHeader& header, const FeatureTable& table);

// Returns the rules with the numbers of `device` in place of hw.*. This is for a model whose
// features are computed from the numbers that another engine assumes for the device, which may
// differ from the real ones.
SpaceDefinition space_with_numbers(const SpaceDefinition& space, const Hardware& device);

// Makes everything but the forests. `set` was made from `dataset` with `table`. Errors: those of
// the space that the header carries; kMismatch and kInvalidArgument for
// more candidates of another schema, or that the rules forbid on every problem.
Result<Model> make_model(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                         const TrainOptions& options);

}  // namespace foretune::train_internal
