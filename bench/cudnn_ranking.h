// Ranks what a program can run that asks cuDNN's heuristics once: the model's pool and the answers,
// as explicit configs. An answer has two descriptions, its engine with knobs and its rank; the
// model scores both, and the weighted mean of them decides.
//
//   FORETUNE_TRY(const auto ranking, ranking_with_answers(selector, problem,
//   answers_in(measured)));
//
// Thread safety: free functions. Cost: that of scoring the pool and the answers.
#pragma once

#include <map>
#include <vector>

#include "bench/pick_verdict.h"
#include "foretune/base/result.h"
#include "foretune/select/select.h"

namespace foretune::bench {

// The explicit configs behind ranks.
using Answers = std::map<Config, Config>;

// Returns the ranks that `cudnn_collect` measured: it records one measurement under both names, so
// that their times are equal.
Answers answers_in(const MeasuredConfigs& measured);

// Returns the explicit configs, best first. Errors: those of score_configs().
Result<std::vector<ScoredConfig>> ranking_with_answers(const Selector& selector,
                                                       const Problem& problem,
                                                       const Answers& answers);

}  // namespace foretune::bench
