// Predicts training examples by the same code as later queries. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/network/network.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

// Returns one prediction for each of `examples`. The network fits the table. Errors: those of
// prepare_networks().
Result<std::vector<double>> network_predictions(const Network& network, const Dataset& dataset,
                                                const FeatureTable& table, const TrainingSet& set,
                                                std::span<const std::uint32_t> examples);

}  // namespace foretune::train_internal
