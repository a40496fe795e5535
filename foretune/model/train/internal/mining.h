// Which problems of a training set are hard: the ones on which a model that did not see them picks
// badly. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

// ln(time of the pick / best time) of every problem among `rows`; `scores` in the order of `rows`,
// lower is better.
std::map<std::uint32_t, double> regrets(const TrainingSet& set, std::span<const std::uint32_t> rows,
                                        std::span<const double> scores);

// Multiplies the weights of the hardest problems, those above the quantile 1 - hard_share of the
// regrets, and scales all so that their mean over the problems of `regret` is 1 again. Problems
// without any regret are not hard. `weight` is per problem of the data set.
void raise_hard(const std::map<std::uint32_t, double>& regret, const MiningOptions& options,
                std::vector<float>& weight);

}  // namespace foretune::train_internal
