// Robust statistics. A NaN among the values makes the result NaN (ranks: NaN comes last); infinite
// values are values.
//
//   const double p10 = quantile(efficiencies, 0.1);
//   const BootstrapInterval interval = bootstrap_interval(efficiencies, mean, 1000, rng);
//
// Thread safety: free functions without state. Cost: quantiles sort a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune {

// Stands in for a figure without any values behind it.
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Returns true when no value is infinite or a NaN.
bool all_finite(std::span<const float> values);
bool all_finite(std::span<const double> values);

// Returns the q-quantile (0 to 1) with linear interpolation between order statistics (Hyndman and
// Fan 1996, type 7). NaN for no values.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);
double mean(std::span<const double> values);
// Returns exp of the mean of logs; values must be positive.
double geometric_mean(std::span<const double> values);
// Returns the interquartile range over the median; 0 for fewer than 2 values.
double relative_spread(std::span<const double> values);

// Returns ranks from 1; ties get the mean of their ranks.
std::vector<double> ranks(std::span<const double> values);
// Returns Spearman's rank correlation; NaN when one side is constant or has fewer than 2 values.
double spearman(std::span<const double> a, std::span<const double> b);

struct BootstrapInterval {
  double low = 0;
  double high = 0;
};
// Returns the 95 % percentile bootstrap interval (Efron 1979) of `statistic` over resampled values.
BootstrapInterval bootstrap_interval(std::span<const double> values,
                                     double (*statistic)(std::span<const double>),
                                     std::size_t samples, Rng& rng);
// Returns the same interval for statistic(after) - statistic(before). Values at the same place
// belong together and are drawn together. Both spans have the same length.
BootstrapInterval paired_bootstrap_interval(std::span<const double> before,
                                            std::span<const double> after,
                                            double (*statistic)(std::span<const double>),
                                            std::size_t samples, Rng& rng);

}  // namespace foretune
