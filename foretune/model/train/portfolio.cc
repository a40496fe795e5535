// A few configs that together serve all training problems well, chosen greedily: minimising a sum
// of minima is submodular, so greedy reaches at least 63 % of the best reduction (Nemhauser, Wolsey
// and Fisher 1978).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

// Where a config was not measured it counts as four times slower than the best: worse than anything
// sensible, better than nothing known.
const double kUnmeasured = std::log(4.0);

}  // namespace

std::vector<std::uint32_t> greedy_portfolio(const Dataset& dataset, std::size_t size) {
  const std::size_t problems = dataset.problems().size();
  const std::size_t configs = dataset.configs().size();
  const std::vector<bool> preferred = train_internal::preferred_rows(dataset);
  std::vector<double> best(problems, std::numeric_limits<double>::infinity());
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (preferred[i] && row.outcome == Outcome::kOk) {
      best[row.problem] = std::min(best[row.problem], static_cast<double>(row.time_ns));
    }
  }
  struct Entry {
    std::uint32_t problem;
    double regret;
  };
  std::vector<std::vector<Entry>> of_config(configs);
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (preferred[i] && row.outcome == Outcome::kOk) {
      of_config[row.config].push_back(
          {row.problem, std::log(static_cast<double>(row.time_ns) / best[row.problem])});
    }
  }
  std::vector<double> covered(problems, kUnmeasured);
  std::vector<std::uint32_t> chosen;
  while (chosen.size() < size) {
    double best_gain = 0;
    std::uint32_t best_config = 0;
    for (std::uint32_t config = 0; config < configs; ++config) {
      double gain = 0;
      for (const Entry& entry : of_config[config]) {
        gain += std::max(0.0, covered[entry.problem] - entry.regret);
      }
      if (gain > best_gain) {
        best_gain = gain;
        best_config = config;
      }
    }
    if (best_gain <= 1e-12) {
      break;
    }
    chosen.push_back(best_config);
    for (const Entry& entry : of_config[best_config]) {
      covered[entry.problem] = std::min(covered[entry.problem], entry.regret);
    }
  }
  return chosen;
}

}  // namespace foretune
