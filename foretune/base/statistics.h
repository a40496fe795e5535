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

// Stands for a figure that nothing was counted for.
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Whether no value is infinite or a NaN.
bool all_finite(std::span<const float> values);
bool all_finite(std::span<const double> values);

// The q-quantile (0 to 1) with linear interpolation between order statistics (Hyndman and Fan 1996,
// type 7). NaN for no values.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);
double mean(std::span<const double> values);
// exp of the mean of logs; values must be positive.
double geometric_mean(std::span<const double> values);
// Interquartile range over the median; 0 for fewer than 2 values.
double relative_spread(std::span<const double> values);

// Ranks from 1, ties get their mean.
std::vector<double> ranks(std::span<const double> values);
// Spearman's rank correlation; NaN when one side is constant or fewer than 2 values.
double spearman(std::span<const double> a, std::span<const double> b);

struct BootstrapInterval {
  double low = 0;
  double high = 0;
};
// Percentile bootstrap (Efron 1979), 95 %, of `statistic` over resampled values.
BootstrapInterval bootstrap_interval(std::span<const double> values,
                                     double (*statistic)(std::span<const double>),
                                     std::size_t samples, Rng& rng);
// The same of statistic(after) - statistic(before), where values at the same place belong together
// and are drawn together. Both have the same length.
BootstrapInterval paired_bootstrap_interval(std::span<const double> before,
                                            std::span<const double> after,
                                            double (*statistic)(std::span<const double>),
                                            std::size_t samples, Rng& rng);

}  // namespace foretune
