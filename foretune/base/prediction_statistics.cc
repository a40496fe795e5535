#include "foretune/base/prediction_statistics.h"

#include <algorithm>
#include <cmath>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

std::size_t first_lowest(std::span<const double> values) {
  return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

double pick_efficiency(std::span<const double> measured, std::span<const double> predicted) {
  FORETUNE_CHECK(measured.size() == predicted.size());
  return measured.empty() ? kNotANumber
                          : measured[first_lowest(measured)] / measured[first_lowest(predicted)];
}

bool is_top_k(std::span<const double> measured, std::span<const double> predicted, std::size_t k) {
  FORETUNE_CHECK(measured.size() == predicted.size());
  if (measured.empty()) {
    return false;
  }
  const std::size_t best = first_lowest(measured);
  std::size_t before = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    before +=
        predicted[i] < predicted[best] || (predicted[i] == predicted[best] && i < best) ? 1U : 0U;
  }
  return before < k;
}

double r_squared(std::span<const double> measured, std::span<const double> predicted) {
  FORETUNE_CHECK(measured.size() == predicted.size());
  const double center = measured.empty() ? kNotANumber : mean(measured);
  double errors = 0;
  double distances = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    errors += (measured[i] - predicted[i]) * (measured[i] - predicted[i]);
    distances += (measured[i] - center) * (measured[i] - center);
  }
  return measured.size() < 2 || distances == 0 ? kNotANumber : 1 - errors / distances;
}

PredictionErrors prediction_errors(std::span<const double> measured,
                                   std::span<const double> predicted) {
  FORETUNE_CHECK(measured.size() == predicted.size());
  double squares = 0;
  double sizes = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double error = predicted[i] - measured[i];
    squares += error * error;
    sizes += std::fabs(error);
  }
  const auto count = static_cast<double>(measured.size());
  return {.rmse = std::sqrt(squares / count),
          .mae = sizes / count,
          .r2 = r_squared(measured, predicted)};
}

}  // namespace foretune
