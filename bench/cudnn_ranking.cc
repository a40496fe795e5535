#include "bench/cudnn_ranking.h"

#include <algorithm>
#include <utility>

#include "foretune/dispatch/answer_ranking.h"
#include "foretune/dispatch/cudnn_provider.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::bench {

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
  std::vector<std::pair<CudnnConfig, LibraryAnswer>> ranked;
  for (const auto& [rank, config] : answers) {
    FORETUNE_TRY(const CudnnConfig words, CudnnConfig::from(rank));
    if (const double weight = dispatch_internal::answer_weight(words.heuristic); weight > 0) {
      ranked.emplace_back(words, LibraryAnswer{.name = rank, .config = config, .weight = weight});
    }
  }
  std::ranges::sort(ranked, {}, [](const auto& answer) {
    return std::pair(answer.first.heuristic, answer.first.rank);
  });
  std::vector<LibraryAnswer> in_order;
  for (auto& [words, answer] : ranked) {
    in_order.push_back(std::move(answer));
  }
  FORETUNE_TRY(const auto ranking,
               dispatch_internal::rank_with_answers(selector, problem, in_order));
  std::vector<ScoredConfig> explicit_ones;
  for (const dispatch_internal::RankedConfig& one : ranking) {
    const auto answer = answers.find(one.config);
    const Config& config = answer == answers.end() ? one.config : answer->second;
    FORETUNE_TRY(const CudnnConfig words, CudnnConfig::from(config));
    if (words.heuristic == CudnnHeuristic::kNone) {  // else the library has no such answer
      explicit_ones.push_back({config, one.score});
    }
  }
  return explicit_ones;
}

}  // namespace foretune::bench
