// Strategies for several targets, out of those for one: copies of a strategy, each of which
// minimises the targets weighed in its own way (decomposition, as Zhang and Li 2007, "MOEA/D"), so
// that together they spread along the Pareto front. All copies learn from all trials, each by its
// own value; nothing is measured twice.
//
// A copy's value of a trial is the augmented Chebyshev distance from the best of each target, max_i
// w_i z_i + 0.05 sum_i w_i z_i (Steuer and Choo 1983), which reaches every point of a front that is
// not convex as well. z_i is the target, its logarithm where it is never negative, scaled to the
// range of the first trials.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/search/strategy.h"

namespace foretune {

// Weights that add up to 1, evenly spread: a lattice of at least `count` points, but for one
// target.
std::vector<std::vector<double>> spread_weights(std::size_t targets, std::size_t count);

class ParetoStrategy final : public Strategy {
 public:
  // Trials that are collected before their ranges settle how targets are scaled.
  static constexpr std::size_t kCalibrationTrials = 8;
  static constexpr std::size_t kCopies = 7;

  // Errors: those of create_strategy().
  static Result<std::unique_ptr<Strategy>> create(std::string_view name, const Problem& problem,
                                                  const Space& space,
                                                  const StrategyOptions& options);

  std::vector<Config> ask(std::size_t count, Rng& rng) override;
  void tell(std::span<const Trial> finished) override;

 private:
  struct Copy {
    std::unique_ptr<Strategy> strategy;
    std::vector<double> weights;
    bool is_exhausted = false;
  };
  struct Scale {
    bool is_logarithm = false;
    double offset = 0;  // added before the logarithm
    double low = 0;
    double range = 1;
  };

  ParetoStrategy(std::vector<Copy> copies, std::size_t limit)
      : copies_(std::move(copies)), left_(limit) {}
  void calibrate();
  void pass_on(std::span<const Trial> trials);
  [[nodiscard]] Trial weighed(const Copy& copy, const Trial& trial) const;
  std::optional<Config> ask_copy(Copy& copy, Rng& rng);

  std::vector<Copy> copies_;
  std::size_t left_;  // how many may be asked for yet
  std::size_t turn_ = 0;
  std::vector<Trial> waiting_;  // until the scales are settled
  std::vector<Scale> scales_;
  std::unordered_set<Config> asked_;  // by any copy
};

}  // namespace foretune
