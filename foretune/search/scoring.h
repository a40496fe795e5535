// Scores of configs that are not a prepared pool.
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// One score per config, infinite where the scorer gives none. Prepares a pool for the call, so ask
// for many at once. Errors: kUnsupported for configs of several lengths, and those of the scorer.
Result<std::vector<double>> score_configs(const Scorer& scorer, const Problem& problem,
                                          const Hardware& hardware,
                                          std::span<const Config> configs);

}  // namespace foretune
