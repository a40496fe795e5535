// Measures how well predictions agree with measured values, and how well they find the best one.
// There are no ties: among equal values the first counts.
//
//   const double efficiency = pick_efficiency(times_ns, predictions);
//
// Both arguments of every function describe the same items in the same order. Lower is better for
// measured values and predictions. The measured values that pick_efficiency() divides are positive.
// Thread safety: free functions without state. Cost: linear.
#pragma once

#include <cstddef>
#include <span>

namespace foretune {

// Returns the lowest measured value over the measured value of the lowest prediction: for times,
// the rate of the pick over the highest rate. NaN for no values.
double pick_efficiency(std::span<const double> measured, std::span<const double> predicted);

// Returns true when the item with the lowest measured value has one of the k lowest predictions.
bool is_top_k(std::span<const double> measured, std::span<const double> predicted, std::size_t k);

// Returns 1 - sum of squared errors / sum of squared distances from the mean. NaN for fewer than
// two values or values that are all alike. Below 0 when the mean predicts better.
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
