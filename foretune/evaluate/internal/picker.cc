#include "foretune/evaluate/internal/picker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"

namespace foretune::evaluate_internal {
namespace {

// Returns the position of "top 5 measured" in a curve. A picker that measures more than five uses
// all its tries.
std::size_t top5_index(std::size_t tries) { return std::max<std::size_t>(5, tries) - 1; }

double quantile_of_sorted(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

struct Statistics {
  double mean = 0;
  double median = 0;
  double p10 = 0;
  double minimum = 0;
  double geomean = 0;
};

Statistics statistics_of_sorted(std::span<const double> sorted) {
  Statistics out;
  double log_sum = 0;
  for (const double value : sorted) {
    out.mean += value;
    log_sum += std::log(value);  // log(0) is minus infinity, and the mean becomes 0
  }
  const auto count = static_cast<double>(sorted.size());
  out.mean /= count;
  out.median = quantile_of_sorted(sorted, 0.5);
  out.p10 = quantile_of_sorted(sorted, 0.1);
  out.minimum = sorted.front();
  out.geomean = std::exp(log_sum / count);
  return out;
}

Interval percentile_interval(double value, std::vector<double>& resampled) {
  if (resampled.empty()) {
    return {value, value, value};
  }
  std::sort(resampled.begin(), resampled.end());
  return {value, quantile_of_sorted(resampled, 0.025), quantile_of_sorted(resampled, 0.975)};
}

// The pick among the offered candidates: the fastest that runs, else the first with the lowest
// bound. They are compared by ordinary time, not by efficiency: the lowest of several noisy times
// is too low, and judges only where there is no other.
struct Pick {
  const MeasuredCandidate* kept = nullptr;
  Comparison comparison;
  std::size_t timed = 0;

  void offer(const MeasuredCandidate* candidate, const Comparison& its) {
    if (its.pick_ns <= 0) {
      return;
    }
    ++timed;
    // A candidate with a time takes precedence over one that was stopped.
    const bool better = kept == nullptr || (comparison.is_bound && !its.is_bound) ||
                        (comparison.is_bound == its.is_bound && candidate->time_ns < kept->time_ns);
    if (better) {
      kept = candidate;
      comparison = its;
    }
  }
  [[nodiscard]] bool judges_itself() const {
    return timed > 1 && !(comparison.is_reference && kept->has_ordinary_time);
  }
};

}  // namespace

ProblemScore score_picks(const MeasuredTimes& times, std::uint32_t problem,
                         std::span<const std::uint32_t> configs, std::size_t tries) {
  FORETUNE_CHECK(tries >= 1 && tries <= kCurveLength);
  ProblemScore out;
  out.problem = problem;
  Pick best;
  Pick pick;
  for (std::size_t i = 0; i < kCurveLength; ++i) {
    if (i < configs.size()) {
      const MeasuredCandidate* candidate = times.find(problem, configs[i]);
      const Comparison comparison =
          candidate == nullptr ? Comparison{} : times.compare(problem, *candidate);
      best.offer(candidate, comparison);
      for (std::size_t h = 0; h < kHitDepths.size(); ++h) {
        if (comparison.is_tie && i < std::max(kHitDepths[h], tries)) {
          out.hits[h] = 1;
        }
      }
    }
    out.best_of[i] = best.comparison.efficiency;
    if (i + 1 == tries) {
      pick = best;
    }
    if (i == top5_index(tries)) {
      out.top5_judges_itself = best.judges_itself();
    }
  }
  out.efficiency = pick.comparison.efficiency;
  out.failed = pick.kept == nullptr;
  out.is_bound = pick.comparison.is_bound;
  return out;
}

ProblemScore score_random(const MeasuredTimes& times, std::uint32_t problem) {
  std::vector<double> efficiencies;
  std::size_t ties = 0;
  for (const MeasuredCandidate& candidate : times.candidates(problem)) {
    if (candidate.state == MeasuredState::kRefused) {
      continue;
    }
    const Comparison comparison = times.compare(problem, candidate);
    efficiencies.push_back(comparison.efficiency);
    ties += comparison.is_tie ? 1 : 0;
  }
  std::sort(efficiencies.begin(), efficiencies.end());
  const std::size_t count = efficiencies.size();
  ProblemScore out;
  out.problem = problem;
  for (std::size_t draws = 1; draws <= kCurveLength; ++draws) {
    // The best of `draws` distinct configs is the i-th smallest with probability C(i - 1, draws -
    // 1) / C(count, draws). From the largest down, each follows from the last.
    const std::size_t k = std::min(draws, count);
    double probability = static_cast<double>(k) / static_cast<double>(count);
    double expected = 0;
    for (std::size_t i = count; i >= k; --i) {
      expected += probability * efficiencies[i - 1];
      if (i > 1) {
        probability *= static_cast<double>(i - k) / static_cast<double>(i - 1);
      }
      if (i == 1) {
        break;
      }
    }
    out.best_of[draws - 1] = expected;
  }
  out.efficiency = out.best_of[0];
  for (std::size_t h = 0; h < kHitDepths.size(); ++h) {
    double miss = 1;
    for (std::size_t i = 0; i < std::min(kHitDepths[h], count); ++i) {
      const std::size_t others = count - ties;
      miss *= others > i ? static_cast<double>(others - i) / static_cast<double>(count - i) : 0;
    }
    out.hits[h] = 1 - miss;
  }
  return out;
}

ProblemScore score_time(const MeasuredTimes& times, std::uint32_t problem, double time_ns) {
  const double oracle_ns = times.ordinary_oracle_ns(problem);
  ProblemScore out;
  out.problem = problem;
  out.efficiency = oracle_ns / time_ns;
  const double tolerance = std::max(kTieTolerance, times.ordinary_oracle_spread(problem));
  out.hits.fill(time_ns <= oracle_ns * (1 + tolerance) ? 1 : 0);
  out.best_of.fill(kNotANumber);
  return out;
}

SummaryIntervals summary_intervals(std::span<const double> values, std::size_t samples,
                                   std::uint64_t seed) {
  FORETUNE_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const Statistics seen = statistics_of_sorted(sorted);
  Rng rng(seed);
  std::array<std::vector<double>, 5> resampled;
  // Counts per value replace copies: walking them in order gives the sorted resample.
  std::vector<std::uint32_t> counts(sorted.size());
  std::vector<double> draw(sorted.size());
  for (std::size_t s = 0; s < samples; ++s) {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      ++counts[rng.below(sorted.size())];
    }
    std::size_t filled = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      for (std::uint32_t c = 0; c < counts[i]; ++c) {
        draw[filled++] = sorted[i];
      }
    }
    const Statistics statistics = statistics_of_sorted(draw);
    resampled[0].push_back(statistics.mean);
    resampled[1].push_back(statistics.median);
    resampled[2].push_back(statistics.p10);
    resampled[3].push_back(statistics.minimum);
    resampled[4].push_back(statistics.geomean);
  }
  return {
      percentile_interval(seen.mean, resampled[0]), percentile_interval(seen.median, resampled[1]),
      percentile_interval(seen.p10, resampled[2]), percentile_interval(seen.minimum, resampled[3]),
      percentile_interval(seen.geomean, resampled[4])};
}

PickerResult summarise(std::string key, std::string name, std::size_t tries,
                       std::span<const ProblemScore> scores, const SummaryOptions& options) {
  FORETUNE_CHECK(!scores.empty());
  PickerResult out;
  out.key = std::move(key);
  out.name = std::move(name);
  out.tries = tries;
  out.problems = scores.size();
  const auto count = static_cast<double>(scores.size());
  const std::size_t top5 = top5_index(tries);
  std::array<double, 4> hits{};
  std::vector<double> top5_efficiency;
  out.measured_curve.assign(kCurveLength, 0);
  for (const ProblemScore& score : scores) {
    out.problem_ids.push_back(score.problem);
    out.efficiency.push_back(score.efficiency);
    out.failed += score.failed ? 1 : 0;
    out.bounds += score.is_bound ? 1 : 0;
    out.replaced += score.replaced ? 1 : 0;
    out.top5_judges_itself += score.top5_judges_itself ? 1 : 0;
    top5_efficiency.push_back(score.best_of[top5]);
    for (std::size_t h = 0; h < hits.size(); ++h) {
      hits[h] += score.hits[h] / count;
    }
    for (std::size_t i = 0; i < kCurveLength; ++i) {
      out.measured_curve[i] += score.best_of[i] / count;
    }
  }
  const SummaryIntervals summary =
      summary_intervals(out.efficiency, options.bootstrap_samples, options.seed);
  out.mean_efficiency = summary.mean;
  out.median_efficiency = summary.median;
  out.p10_efficiency = summary.p10;
  out.min_efficiency = summary.minimum;
  out.geomean_efficiency = summary.geomean;
  out.top1_hit = hits[0];
  out.top3_hit = hits[1];
  out.top5_hit = hits[2];
  out.top10_hit = hits[3];
  if (std::isnan(out.measured_curve[0])) {
    out.top5_measured_efficiency = {kNotANumber, kNotANumber, kNotANumber};
    out.measured_curve.clear();
  } else {
    out.top5_measured_efficiency =
        summary_intervals(top5_efficiency, options.bootstrap_samples, options.seed).mean;
  }
  return out;
}

void compare_with_model(const PickerResult& model, const SummaryOptions& options,
                        PickerResult& other) {
  std::vector<double> gains;
  std::vector<double> logs;
  std::size_t i = 0;
  for (std::size_t j = 0; j < other.problem_ids.size(); ++j) {
    while (i < model.problem_ids.size() && model.problem_ids[i] < other.problem_ids[j]) {
      ++i;
    }
    if (i == model.problem_ids.size() || model.problem_ids[i] != other.problem_ids[j]) {
      continue;
    }
    gains.push_back(model.efficiency[i] - other.efficiency[j]);
    if (model.efficiency[i] > 0 && other.efficiency[j] > 0) {
      logs.push_back(std::log(model.efficiency[i] / other.efficiency[j]));
    }
  }
  other.model_gain = {kNotANumber, kNotANumber, kNotANumber};
  if (!gains.empty()) {
    // The bootstrap resamples differences on the same problems, so the difficulty that a problem
    // has for both cancels out.
    std::vector<double> copy = gains;
    Rng rng(options.seed);
    const BootstrapInterval interval =
        options.bootstrap_samples == 0
            ? BootstrapInterval{mean(gains), mean(gains)}
            : bootstrap_interval(copy, &mean, options.bootstrap_samples, rng);
    other.model_gain = {mean(gains), interval.low, interval.high};
  }
  other.model_speedup = logs.empty() ? kNotANumber : std::exp(mean(logs));
}

}  // namespace foretune::evaluate_internal
