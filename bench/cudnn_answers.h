// The answers of cuDNN's heuristics, for the programs that measure its configs.
// Thread safety: free functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "foretune/dataset/measurement.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::bench {

// PyTorch's benchmark mode tries so many answers.
inline constexpr std::size_t kBenchmarkAnswers = 10;

// Explicit configs, best first.
using CudnnAnswers = std::map<CudnnHeuristic, std::vector<CudnnConfig>>;

inline std::vector<Config> to_configs(std::span<const CudnnConfig> from) {
  std::vector<Config> configs;
  for (const CudnnConfig& config : from) {
    configs.push_back(config.to_config());
  }
  return configs;
}

// Times what PyTorch's benchmark mode would try, one window each, and returns the fastest; nothing
// when none of them runs.
inline std::optional<CudnnConfig> benchmark_choice(Measurer& measurer, const Problem& problem,
                                                   CudnnAnswers answers) {
  std::vector<CudnnConfig> tried = answers[CudnnHeuristic::kA];
  tried.resize(std::min(tried.size(), kBenchmarkAnswers));
  const std::vector<CudnnConfig>& fallback = answers[CudnnHeuristic::kFallback];
  tried.insert(tried.end(), fallback.begin(), fallback.end());
  const std::vector<Measurement> compared = measurer.compare(problem, to_configs(tried), 1);
  std::optional<CudnnConfig> choice;
  double best_ns = -1;
  for (std::size_t i = 0; i < compared.size(); ++i) {
    const MetricValue* const time = compared[i].find(kMedianNs);
    if (compared[i].outcome == Outcome::kOk && time != nullptr &&
        (best_ns < 0 || time->value < best_ns)) {
      best_ns = time->value;
      choice = tried[i];
    }
  }
  return choice;
}

}  // namespace foretune::bench
