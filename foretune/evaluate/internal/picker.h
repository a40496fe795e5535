// Scores a way of picking on each problem, and summarises the scores. Internal to evaluate.
// Thread safety: free functions without state. Cost: summarise() resamples, samples x problems.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"

namespace foretune::evaluate_internal {

inline constexpr std::array<std::size_t, 4> kHitDepths{1, 3, 5, 10};

struct ProblemScore {
  std::uint32_t problem = 0;
  double efficiency = 0;                       // efficiency of the pick
  std::array<double, 4> hits{};                // by kHitDepths: 0 or 1, or a probability
  std::array<double, kCurveLength> best_of{};  // efficiency when the first 1, 2, ... are measured
  // The same time both chose and judges the fastest of the first five.
  bool top5_judges_itself = false;
  bool failed = false;
  bool is_bound = false;
  bool replaced = false;
};

// Scores `configs`, which are best first. The first `tries` are measured, and the fastest that runs
// is the pick. It is chosen by its ordinary time and judged by compare(), which uses another
// measurement where there is one. The problem must have an oracle.
ProblemScore score_picks(const MeasuredTimes& times, std::uint32_t problem,
                         std::span<const std::uint32_t> configs, std::size_t tries);
// Returns the expected score of a uniformly random measured config.
ProblemScore score_random(const MeasuredTimes& times, std::uint32_t problem);
// Scores a time from elsewhere: the efficiency is above 1 when it beats every config. Hits are the
// same for all depths; results for more tries are unknown.
ProblemScore score_time(const MeasuredTimes& times, std::uint32_t problem, double time_ns);

// Computes summaries with intervals of finite values. With 0 `samples` the interval is the value.
struct SummaryIntervals {
  Interval mean;
  Interval median;
  Interval p10;
  Interval minimum;
  Interval geomean;
};
SummaryIntervals summary_intervals(std::span<const double> values, std::size_t samples,
                                   std::uint64_t seed);

struct SummaryOptions {
  std::size_t bootstrap_samples = 2000;
  std::uint64_t seed = 42;
};
// Summarises `scores`, which are not empty and in ascending order of problems.
PickerResult summarise(std::string key, std::string name, std::size_t tries,
                       std::span<const ProblemScore> scores, const SummaryOptions& options);
// Fills model_gain and model_speedup of `other`.
void compare_with_model(const PickerResult& model, const SummaryOptions& options,
                        PickerResult& other);

}  // namespace foretune::evaluate_internal
