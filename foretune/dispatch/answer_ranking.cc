#include "foretune/dispatch/answer_ranking.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "foretune/model/model_scorer.h"

namespace foretune::dispatch_internal {

Result<std::vector<RankedConfig>> rank_with_answers(const Selector& selector,
                                                    const Problem& problem,
                                                    std::span<const LibraryAnswer> answers) {
  std::vector<RankedConfig> pool;
  std::map<Config, double> scores;  // of the pool
  for (const RankedCandidate& ranked : selector.rank(problem)) {
    pool.push_back({.config = selector.config(ranked.candidate), .score = ranked.score});
    scores.emplace(pool.back().config, ranked.score);
  }
  // The scores of a config that answers have, by any of its names.
  struct Mean {
    const LibraryAnswer* first = nullptr;
    double sum = 0;
    double weights = 0;
    [[nodiscard]] double value() const { return sum / weights; }
  };
  std::map<Config, Mean> means;
  std::set<Config> names;
  for (const LibraryAnswer& answer : answers) {
    const auto [place, is_new] = means.try_emplace(answer.config, Mean{.first = &answer});
    Mean& mean = place->second;
    if (is_new) {
      const auto known = scores.find(answer.config);
      FORETUNE_TRY(mean.sum, known != scores.end()
                                 ? Result<double>(known->second)
                                 : score_config(selector.model(), problem, answer.config));
      mean.weights = 1;
    }
    if (const auto named = scores.find(answer.name); named != scores.end()) {
      mean.sum += answer.weight * named->second;
      mean.weights += answer.weight;
    }
    names.insert(answer.name);
  }
  std::vector<RankedConfig> ranking;
  const auto is_librarys_first = [&](const Config& config) {
    return !answers.empty() && config == answers.front().config;
  };
  for (RankedConfig& ranked : pool) {
    if (names.contains(ranked.config) || is_librarys_first(ranked.config)) {
      continue;
    }
    if (const auto answer = means.find(ranked.config); answer != means.end()) {
      ranked.score = answer->second.value();
    }
    ranking.push_back(std::move(ranked));
  }
  for (const LibraryAnswer& answer : answers) {
    const Mean& mean = means.at(answer.config);
    if (mean.first == &answer &&
        (!scores.contains(answer.config) || is_librarys_first(answer.config))) {
      ranking.push_back({.config = answer.name, .score = mean.value()});
    }
  }
  std::ranges::stable_sort(ranking, {}, &RankedConfig::score);
  return ranking;
}

}  // namespace foretune::dispatch_internal
