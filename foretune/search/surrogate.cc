#include "foretune/search/surrogate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/search/scoring.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

// Configs that are scored at a time when all of a space are.
constexpr std::uint64_t kPortion = 16384;

bool better(const ScoredConfig& a, const ScoredConfig& b) {
  return a.score != b.score ? a.score < b.score : a.config < b.config;
}

Status compare_with_all(const Problem& problem, const EnumerableSpace& listed, const Scorer& scorer,
                        const Hardware& hardware, SurrogateResult& out) {
  const double found = out.ranked.front().score;
  double best = found;
  std::vector<Config> portion;
  for (std::uint64_t i = 0; i < listed.count(); ++i) {
    portion.push_back(listed.unrank(i));
    if (portion.size() < kPortion && i + 1 < listed.count()) {
      continue;
    }
    FORETUNE_TRY(const std::vector<double> scores,
                 score_configs(scorer, problem, hardware, portion));
    for (const double score : scores) {
      best = std::min(best, score);
      out.better += score < found ? 1U : 0U;
    }
    portion.clear();
  }
  out.best_score = best;
  out.efficiency = std::exp(best - found);
  return {};
}

}  // namespace

Result<SurrogateResult> surrogate_search(const Problem& problem, const Space& space,
                                         const Scorer& scorer, const SurrogateOptions& options) {
  if (options.budget == 0 || options.top == 0) {
    return fail(ErrorCode::kInvalidArgument, "a search needs a budget and a number of results");
  }
  FORETUNE_TRY(
      const std::unique_ptr<Strategy> strategy,
      create_strategy(
          options.strategy, problem, space,
          {.sample_size = options.budget, .scorer = &scorer, .hardware = options.hardware}));
  Rng rng = Rng(options.seed).split(problem.hash());
  SurrogateResult out;
  std::vector<Trial> trials;
  while (out.scored < options.budget) {
    const std::vector<Config> asked = strategy->ask(
        std::min(std::max<std::size_t>(options.batch, 1), options.budget - out.scored), rng);
    if (asked.empty()) {
      break;
    }
    FORETUNE_TRY(const std::vector<double> scores,
                 score_configs(scorer, problem, options.hardware, asked));
    trials.clear();
    for (std::size_t i = 0; i < asked.size(); ++i) {
      out.ranked.push_back({asked[i], scores[i]});
      // As a time, which strategies may take the logarithm of.
      trials.push_back({.config = asked[i], .value = std::exp(scores[i])});
    }
    strategy->tell(trials);
    out.scored += asked.size();
  }
  if (out.ranked.empty()) {
    return fail(ErrorCode::kNotFound, "no config of ", space.schema().name, " is legal for ",
                problem.shown_text());
  }
  std::sort(out.ranked.begin(), out.ranked.end(), &better);
  out.ranked.resize(std::min(out.ranked.size(), options.top));
  if (const EnumerableSpace* const listed = space.enumerable(); listed != nullptr) {
    out.legal_configs = listed->count();
    if (listed->count() <= options.exhaustive_limit) {
      FORETUNE_TRY_STATUS(compare_with_all(problem, *listed, scorer, options.hardware, out));
    }
  }
  return out;
}

}  // namespace foretune
