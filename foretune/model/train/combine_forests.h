// Forests made of forests. Internal.
// Thread safety: free functions without state. Cost: linear in the nodes.
#pragma once

#include <span>

#include "foretune/model/forest/forest.h"

namespace foretune::train_internal {

// Predicts the sum: the trees of `first`, then those of `second`.
Forest joined(const Forest& first, const Forest& second);
// Predicts `factor` times as much.
Forest scaled(Forest forest, double factor);
// Predicts the mean of at least one forest; the same forest for one.
Forest averaged(std::span<const Forest> forests);

}  // namespace foretune::train_internal
