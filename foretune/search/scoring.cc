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
  const std::size_t width = configs[0].words.size();
  std::vector<std::int32_t> words;
  words.reserve(configs.size() * width);
  for (const Config& config : configs) {
    if (config.words.size() != width) {
      return fail(ErrorCode::kUnsupported, "a model ranks configs of one length only");
    }
    words.insert(words.end(), config.words.begin(), config.words.end());
  }
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool, scorer.prepare(words, width, hardware));
  std::vector<std::byte> workspace(pool->workspace_bytes());
  pool->score(problem, workspace, scores, {});
  std::replace_if(
      scores.begin(), scores.end(), [](double score) { return std::isnan(score); },
      std::numeric_limits<double>::infinity());
  return scores;
}

}  // namespace foretune
