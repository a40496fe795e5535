// Ranks the answers of a library's heuristics together with a model's pool, as a program does that
// asks the heuristics once.
//
//   FORETUNE_TRY(const auto ranking, rank_with_answers(selector, problem, maker.answers()));
//
// Thread safety: free functions. Cost: that of ranking the pool, and some microseconds for an
// answer.
#pragma once

#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dispatch/kernel_provider.h"
#include "foretune/problem/problem.h"
#include "foretune/select/select.h"
#include "foretune/space/config.h"

namespace foretune::dispatch_internal {

struct RankedConfig {
  Config config;
  double score = 0;
};

// Returns every config once, best first. The score of an answer is the weighted mean of the model's
// scores of the config and of its names that are in the pool. The library's first answer has its
// name; others have one where the pool does not have the config itself. Errors: those of
// score_config().
Result<std::vector<RankedConfig>> rank_with_answers(const Selector& selector,
                                                    const Problem& problem,
                                                    std::span<const LibraryAnswer> answers);

}  // namespace foretune::dispatch_internal
