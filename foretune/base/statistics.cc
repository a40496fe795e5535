#include "foretune/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "foretune/base/check.h"

namespace foretune {
namespace {

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

double quantile_of_sorted(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  // Infinite values are legitimate ("not measured yet"); their differences are not numbers.
  if (share == 0 || sorted[below] == sorted[above]) {
    return sorted[below];
  }
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

template <class T>
bool are_finite(std::span<const T> values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
}

}  // namespace

bool all_finite(std::span<const float> values) { return are_finite(values); }
bool all_finite(std::span<const double> values) { return are_finite(values); }

double quantile(std::span<const double> values, double q) {
  if (values.empty() || std::isnan(q) || has_nan(values)) {
    return kNotANumber;
  }
  return quantile_of_sorted(sorted_copy(values), std::clamp(q, 0.0, 1.0));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double mean(std::span<const double> values) {
  if (values.empty()) {
    return kNotANumber;
  }
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) {
    return kNotANumber;
  }
  double sum = 0;
  for (const double value : values) {
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

double relative_spread(std::span<const double> values) {
  if (values.size() < 2) {
    return 0;
  }
  if (has_nan(values)) {
    return kNotANumber;
  }
  const std::vector<double> sorted = sorted_copy(values);
  const double center = quantile_of_sorted(sorted, 0.5);
  const double range = quantile_of_sorted(sorted, 0.75) - quantile_of_sorted(sorted, 0.25);
  return center > 0 ? range / center : 0;
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    // NaN after all numbers: without an order among all values, sorting is undefined.
    const bool nan_b = std::isnan(values[b]);
    return std::isnan(values[a]) ? false : nan_b || values[a] < values[b];
  });
  std::vector<double> out(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    const double value = values[order[begin]];
    while (end < order.size() &&
           (values[order[end]] == value || (std::isnan(value) && std::isnan(values[order[end]])))) {
      ++end;
    }
    // Positions begin + 1 ... end share their mean.
    const double rank = 0.5 * static_cast<double>(begin + 1 + end);
    for (; begin < end; ++begin) {
      out[order[begin]] = rank;
    }
  }
  return out;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.size() < 2 || has_nan(a) || has_nan(b)) {
    return kNotANumber;
  }
  const std::vector<double> ranks_a = ranks(a);
  const std::vector<double> ranks_b = ranks(b);
  const double center = 0.5 * static_cast<double>(a.size() + 1);
  double covariance = 0;
  double variance_a = 0;
  double variance_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double da = ranks_a[i] - center;
    const double db = ranks_b[i] - center;
    covariance += da * db;
    variance_a += da * da;
    variance_b += db * db;
  }
  if (variance_a == 0 || variance_b == 0) {
    return kNotANumber;
  }
  return covariance / std::sqrt(variance_a * variance_b);
}

BootstrapInterval bootstrap_interval(std::span<const double> values,
                                     double (*statistic)(std::span<const double>),
                                     std::size_t samples, Rng& rng) {
  if (values.empty() || samples == 0) {
    return {kNotANumber, kNotANumber};
  }
  std::vector<double> resampled(values.size());
  std::vector<double> results(samples);
  for (double& result : results) {
    for (double& value : resampled) {
      value = values[rng.below(values.size())];
    }
    result = statistic(resampled);
  }
  if (has_nan(results)) {
    return {kNotANumber, kNotANumber};
  }
  std::sort(results.begin(), results.end());
  return {quantile_of_sorted(results, 0.025), quantile_of_sorted(results, 0.975)};
}

BootstrapInterval paired_bootstrap_interval(std::span<const double> before,
                                            std::span<const double> after,
                                            double (*statistic)(std::span<const double>),
                                            std::size_t samples, Rng& rng) {
  FORETUNE_CHECK(before.size() == after.size());
  if (before.empty() || samples == 0) {
    return {kNotANumber, kNotANumber};
  }
  std::vector<double> changes;
  std::vector<double> drawn_before(before.size());
  std::vector<double> drawn_after(before.size());
  for (std::size_t sample = 0; sample < samples; ++sample) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto from = static_cast<std::size_t>(rng.below(before.size()));
      drawn_before[i] = before[from];
      drawn_after[i] = after[from];
    }
    changes.push_back(statistic(drawn_after) - statistic(drawn_before));
  }
  return {quantile(changes, 0.025), quantile(changes, 0.975)};
}

}  // namespace foretune
