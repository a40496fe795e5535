// The ways of picking without a model. Internal to evaluate.
//
// Configs are judged by their efficiency over measured problems. In a sampled data set most pairs
// are unknown. They get the config's own mean, shrunk towards the mean of all by kShrinkage
// imaginary problems, and count as 0 where the config is not legal.
//
// Thread safety: that of MeasuredTimes; TrainedBaselines is immutable after construction.
// Cost: problems x configs, at most kMaxProblems x kMaxConfigs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/internal/picker.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/space/parametric_space.h"

namespace foretune::evaluate_internal {

inline constexpr double kShrinkage = 4;
inline constexpr std::size_t kMaxProblems = 2000;
inline constexpr std::size_t kMaxConfigs = 4000;
inline constexpr std::size_t kPortfolioLength = 64;

// Returns the space of the data set, else of the model; nullptr when neither has one, or for
// another schema (legality is then estimated from how often a config was measured).
std::shared_ptr<const CompiledSpace> known_space(const Dataset& dataset, const Model* model);

class TrainedBaselines {
 public:
  // Learns from the problems of `training` for which `use` holds. All references must outlive it.
  TrainedBaselines(const Dataset& training, const MeasuredTimes& times,
                   const std::vector<bool>& use, const CompiledSpace* space);

  [[nodiscard]] std::size_t problems() const { return problems_.size(); }
  // Returns config ids of the training set by estimated mean efficiency, best first.
  [[nodiscard]] std::span<const std::uint32_t> by_mean() const { return by_mean_; }
  // Returns config ids in greedy order: each next config adds most to the mean of the best
  // efficiency so far. The rest follow as in by_mean().
  [[nodiscard]] std::span<const std::uint32_t> portfolio() const { return portfolio_; }
  // Returns training problems by distance, nearest first (log2 of sizes; another label counts as a
  // factor of 16 in one size).
  [[nodiscard]] std::vector<std::uint32_t> nearest(const Problem& problem) const;

 private:
  struct Estimates;
  Estimates estimate(const std::vector<std::uint32_t>& problems, const CompiledSpace* space) const;
  // Returns the efficiency of an unmeasured pair.
  double efficiency_by_space(const CompiledSpace& space, std::uint32_t problem,
                             std::uint32_t config, double estimate) const;
  void order_by_mean(const Estimates& estimates);
  void choose_portfolio(const Estimates& estimates);

  const Dataset& training_;
  const MeasuredTimes& times_;
  std::unordered_map<Config, std::uint32_t> ids_;
  std::vector<std::uint32_t> problems_;
  std::vector<std::uint32_t> by_mean_;
  std::vector<std::uint32_t> portfolio_;
};

// Returns the distance that nearest() uses; infinite between problems of different types.
double log_distance(const Problem& a, const Problem& b);

struct BaselineInput {
  const Dataset& dataset;
  const MeasuredTimes& times;
  std::span<const std::uint32_t> evaluated;  // problem ids, ascending, all with an oracle
  const Model* model = nullptr;
  const EvaluateOptions& options;
};
struct BaselineResults {
  std::vector<PickerResult> pickers;      // all possible for the input, in the order of reports
  std::vector<PortfolioPoint> portfolio;  // of the training set, or of the model
};
BaselineResults evaluate_baselines(const BaselineInput& input);

}  // namespace foretune::evaluate_internal
