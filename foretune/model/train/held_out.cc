#include "foretune/model/train/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "foretune/base/statistics.h"

namespace foretune::train_internal {

std::vector<std::pair<std::string, double>> HeldOutMetrics::named() const {
  return {{"mean_efficiency", mean_efficiency},
          {"p10_efficiency", p10_efficiency},
          {"min_efficiency", min_efficiency},
          {"top5_measured_efficiency", top5_measured_efficiency},
          {"rmse_log", rmse_log},
          {"spearman_mean", spearman_mean}};
}

namespace {

struct OneProblem {
  double efficiency = 0;
  double top5 = 0;
  double spearman = 0;
  double squared_error = 0;
  std::size_t errors = 0;
};

OneProblem judge(const TrainingSet& set, std::span<const double> scores,
                 const std::vector<std::uint32_t>& examples, bool absolute) {
  std::vector<std::uint32_t> order = examples;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b]; });
  OneProblem out;
  const auto efficiency = [&](std::uint32_t example) {
    return std::exp(-static_cast<double>(set.relative[example]));
  };
  out.efficiency = std::min(1.0, efficiency(order.front()));
  for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i) {
    if (!set.censored[order[i]]) {
      out.top5 = std::max(out.top5, efficiency(order[i]));
    }
  }
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const std::uint32_t example : examples) {
    if (!set.censored[example]) {
      predicted.push_back(scores[example]);
      measured.push_back(static_cast<double>(set.log_time[example]));
    }
  }
  out.spearman = spearman(predicted, measured);
  const double shift = absolute ? 0 : mean(measured) - mean(predicted);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = predicted[i] + shift - measured[i];
    out.squared_error += error * error;
  }
  out.errors = predicted.size();
  return out;
}

}  // namespace

HeldOutMetrics held_out_metrics(const TrainingSet& set, std::span<const double> scores,
                                bool absolute) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_problem;
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    if (std::isfinite(scores[i])) {
      by_problem[set.problem[i]].push_back(i);
    }
  }
  std::vector<double> efficiency;
  std::vector<double> top5;
  std::vector<double> correlation;
  double squared_error = 0;
  std::size_t errors = 0;
  for (const auto& [problem, examples] : by_problem) {
    const OneProblem one = judge(set, scores, examples, absolute);
    efficiency.push_back(one.efficiency);
    top5.push_back(one.top5);
    if (std::isfinite(one.spearman)) {
      correlation.push_back(one.spearman);
    }
    squared_error += one.squared_error;
    errors += one.errors;
  }
  HeldOutMetrics out;
  if (efficiency.empty()) {
    return out;
  }
  out.mean_efficiency = mean(efficiency);
  out.p10_efficiency = quantile(efficiency, 0.1);
  out.min_efficiency = quantile(efficiency, 0);
  out.top5_measured_efficiency = mean(top5);
  out.rmse_log = errors == 0 ? 0 : std::sqrt(squared_error / static_cast<double>(errors));
  out.spearman_mean = correlation.empty() ? 0 : mean(correlation);
  return out;
}

}  // namespace foretune::train_internal
