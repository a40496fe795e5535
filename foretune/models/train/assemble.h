// A model file's contents but for its forests: candidates, portfolio, ranges, identities. Internal.
// Thread safety: free functions without state.
#pragma once

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/train/trainer.h"
#include "foretune/models/train/training_set.h"
#include "foretune/space/parametric_space.h"

namespace foretune::train_internal {

// Errors: kMismatch for a validation set, of which no model is made.
Status check_role(const Dataset& dataset);

// What a header and a table say: no candidates, no ranges, no forests. A header without a space
// gives one without rules.
Model model_without_data(const DatasetHeader& header, const FeatureTable& table);

// The rules with the device's own numbers in them: for a model whose features are computed from
// what somebody's engine takes for the device, which need not be what it has.
SpaceDefinition space_with_numbers(const SpaceDefinition& space, const Hardware& device);

// `set` was made of `dataset` with `table`. Errors: those of the space that the header carries.
Result<Model> make_model(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                         const TrainOptions& options);

}  // namespace foretune::train_internal
