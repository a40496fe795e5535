// Surrogate search: a strategy walks a space, and what it is told are a model's scores instead of
// measurements. For spaces too large to be ranked; where a space can be listed, the result says how
// far it stays behind scoring everything.
//
//   FORETUNE_TRY(const SurrogateResult found,
//                surrogate_search(problem, *space, *scorer, {.strategy = "de", .budget = 500}));
//   use(found.ranked.front().config);
//
// Every config in the result is legal, canonical and distinct.
// Thread safety: free functions without state. Cost: the budget's scores, in batches of `batch`;
// with compare_exhaustively those of the whole space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune {

struct SurrogateOptions {
  std::string strategy = "local";
  std::size_t budget = 500;  // configs scored
  std::size_t top = 10;
  std::size_t batch = 16;  // asked for at once
  Hardware hardware;
  std::uint64_t seed = 42;
  // Scores a space of at most so many configs whole, to compare with; 0 never does.
  std::uint64_t exhaustive_limit = 2000000;
};

struct ScoredConfig {
  Config config;
  double score = 0;  // natural log of time, up to a constant per problem
};

struct SurrogateResult {
  std::vector<ScoredConfig> ranked;  // best first, at most `top`
  std::size_t scored = 0;            // at most the budget; less when the strategy had no more
  std::optional<std::uint64_t> legal_configs;  // when the space can be counted
  // When everything was scored: the best score of all, predicted time of that one / of the best
  // found, and how many score better than the best found.
  std::optional<double> best_score;
  double efficiency = 0;
  std::uint64_t better = 0;
};

// Errors: kInvalidArgument for a budget or `top` of 0, kNotFound when no config is legal, those of
// the strategy and the scorer.
Result<SurrogateResult> surrogate_search(const Problem& problem, const Space& space,
                                         const Scorer& scorer, const SurrogateOptions& options);

}  // namespace foretune
