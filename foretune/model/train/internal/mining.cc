#include "foretune/model/train/internal/mining.h"

#include <algorithm>

#include "foretune/base/statistics.h"

namespace foretune::train_internal {

std::map<std::uint32_t, double> regrets(const TrainingSet& set, std::span<const std::uint32_t> rows,
                                        std::span<const double> scores) {
  std::map<std::uint32_t, std::size_t> picks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [pick, is_new] = picks.emplace(set.problem[rows[i]], i);
    if (!is_new && scores[i] < scores[pick->second]) {
      pick->second = i;
    }
  }
  std::map<std::uint32_t, double> out;
  for (const auto& [problem, pick] : picks) {
    out.emplace(problem, std::max(0.0, static_cast<double>(set.relative[rows[pick]])));
  }
  return out;
}

void raise_hard(const std::map<std::uint32_t, double>& regret, const MiningOptions& options,
                std::vector<float>& weight) {
  std::vector<double> values;
  double lowest = 1e300;
  for (const auto& [problem, value] : regret) {
    values.push_back(value);
    lowest = std::min(lowest, static_cast<double>(weight[problem]));
  }
  const double limit = quantile(values, 1 - options.hard_share);
  double sum = 0;
  for (const auto& [problem, value] : regret) {
    double raised = static_cast<double>(weight[problem]) / lowest;
    if (value > 0 && value >= limit) {
      raised = std::min(options.most, raised * options.factor);
    }
    weight[problem] = static_cast<float>(raised);
    sum += raised;
  }
  for (const auto& [problem, value] : regret) {
    weight[problem] *= static_cast<float>(static_cast<double>(regret.size()) / sum);
  }
}

}  // namespace foretune::train_internal
