#include "foretune/search/scoring.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace foretune {

Result<std::vector<double>> score_configs(const Scorer& scorer, const Problem& problem,
                                          const Hardware& hardware,
                                          std::span<const Config> configs) {
  std::vector<double> scores(configs.size());
  if (configs.empty()) {
    return scores;
  }
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool,
               scorer.prepare(ConfigList(configs), hardware));
  std::vector<std::byte> workspace(pool->workspace_bytes());
  pool->score(problem, workspace, scores, {});
  std::replace_if(
      scores.begin(), scores.end(), [](double score) { return std::isnan(score); },
      std::numeric_limits<double>::infinity());
  return scores;
}

}  // namespace foretune
