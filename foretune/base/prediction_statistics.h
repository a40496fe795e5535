// How well predictions tell what was measured, and which of several is best. There are no ties:
// among equal values the first counts.
//
//   const double efficiency = pick_efficiency(times_ns, predictions);
//
// Both sides of every function are of the same things, in the same order; of measured values and
// predictions lower is better, and what a pick is judged by is positive.
// Thread safety: free functions without state. Cost: linear.
#pragma once

#include <cstddef>
#include <span>

namespace foretune {

// Lowest measured value / that of the lowest prediction: for times the rate of the pick over the
// highest rate. NaN for no values.
double pick_efficiency(std::span<const double> measured, std::span<const double> predicted);

// Whether the lowest measured value is among the k lowest predictions.
bool is_top_k(std::span<const double> measured, std::span<const double> predicted, std::size_t k);

// 1 - sum of squared errors / sum of squared distances from the mean; NaN for fewer than two values
// or values that are all alike. Below 0 when the mean predicts better.
double r_squared(std::span<const double> measured, std::span<const double> predicted);

// All NaN for no values.
struct PredictionErrors {
  double rmse = 0;
  double mae = 0;
  double r2 = 0;  // r_squared()
};
PredictionErrors prediction_errors(std::span<const double> measured,
                                   std::span<const double> predicted);

}  // namespace foretune
