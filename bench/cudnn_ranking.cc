#include "bench/cudnn_ranking.h"

#include <algorithm>

#include "foretune/model/model_scorer.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::bench {
namespace {

// The weights of a rank's score, where an explicit config's is 1; chosen on training networks.
constexpr double kWeightOfA = 1;
constexpr double kWeightOfB = 0.5;

double weight_of(CudnnHeuristic heuristic) {
  return heuristic == CudnnHeuristic::kA   ? kWeightOfA
         : heuristic == CudnnHeuristic::kB ? kWeightOfB
                                           : 0;
}

struct Mean {
  double sum = 0;
  double weights = 0;
};

}  // namespace

Answers answers_in(const MeasuredConfigs& measured) {
  std::map<double, Config> by_time;
  for (const auto& [config, row] : measured) {
    const auto words = CudnnConfig::from(config);
    if (words && words->heuristic == CudnnHeuristic::kNone && row.once_ns) {
      by_time.emplace(*row.once_ns, config);
    }
  }
  Answers answers;
  for (const auto& [config, row] : measured) {
    const auto words = CudnnConfig::from(config);
    if (words && words->heuristic != CudnnHeuristic::kNone && row.once_ns) {
      if (const auto same = by_time.find(*row.once_ns); same != by_time.end()) {
        answers.emplace(config, same->second);
      }
    }
  }
  return answers;
}

Result<std::vector<ScoredConfig>> ranking_with_answers(const Selector& selector,
                                                       const Problem& problem,
                                                       const Answers& answers) {
  std::vector<Config> configs;
  for (std::uint32_t i = 0; i < selector.pool_size(); ++i) {
    Config config = selector.config(i);
    FORETUNE_TRY(const CudnnConfig words, CudnnConfig::from(config));
    if (words.heuristic == CudnnHeuristic::kNone) {
      configs.push_back(std::move(config));
    }
  }
  std::vector<std::pair<Config, CudnnHeuristic>> ranks;
  for (const auto& [rank, config] : answers) {
    FORETUNE_TRY(const CudnnConfig words, CudnnConfig::from(rank));
    if (weight_of(words.heuristic) > 0) {
      ranks.emplace_back(rank, words.heuristic);
      configs.push_back(config);
    }
  }
  std::sort(configs.begin(), configs.end());
  configs.erase(std::unique(configs.begin(), configs.end()), configs.end());
  std::vector<Config> all = configs;
  for (const auto& [rank, heuristic] : ranks) {
    all.push_back(rank);
  }
  FORETUNE_TRY(const std::vector<double> scores, score_configs(selector.model(), problem, all));
  std::map<Config, Mean> means;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    means[configs[i]] = {scores[i], 1};
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Mean& mean = means[answers.at(ranks[i].first)];
    const double weight = weight_of(ranks[i].second);
    mean.sum += weight * scores[configs.size() + i];
    mean.weights += weight;
  }
  std::vector<ScoredConfig> ranking;
  for (const auto& [config, mean] : means) {
    ranking.push_back({config, mean.sum / mean.weights});
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const auto& a, const auto& b) { return a.score < b.score; });
  return ranking;
}

}  // namespace foretune::bench
