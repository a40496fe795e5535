#include "foretune/evaluate/ck_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t first_lowest(std::span<const double> values) {
  return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

double tflops_efficiency(std::span<const double> times_ns, std::span<const double> predictions) {
  FORETUNE_CHECK(times_ns.size() == predictions.size());
  return times_ns.empty() ? kNan
                          : times_ns[first_lowest(times_ns)] / times_ns[first_lowest(predictions)];
}

bool is_top_k(std::span<const double> times_ns, std::span<const double> predictions,
              std::size_t k) {
  FORETUNE_CHECK(times_ns.size() == predictions.size());
  if (times_ns.empty()) {
    return false;
  }
  const std::size_t oracle = first_lowest(times_ns);
  std::size_t before = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    before += predictions[i] < predictions[oracle] ||
                      (predictions[i] == predictions[oracle] && i < oracle)
                  ? 1U
                  : 0U;
  }
  return before < k;
}

double r_squared(std::span<const double> measured, std::span<const double> predicted) {
  FORETUNE_CHECK(measured.size() == predicted.size());
  const double center = measured.empty() ? kNan : mean(measured);
  double errors = 0;
  double distances = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    errors += (measured[i] - predicted[i]) * (measured[i] - predicted[i]);
    distances += (measured[i] - center) * (measured[i] - center);
  }
  return measured.size() < 2 || distances == 0 ? kNan : 1 - errors / distances;
}

void CkMetricsBuilder::add(std::span<const double> times_ns, std::span<const double> predicted_log,
                           double flops) {
  if (times_ns.empty()) {
    return;
  }
  efficiencies_.push_back(tflops_efficiency(times_ns, predicted_log));
  for (std::size_t i = 0; i < kCkHitDepths.size(); ++i) {
    hits_[i] += is_top_k(times_ns, predicted_log, kCkHitDepths[i]) ? 1U : 0U;
  }
  knows_work_ = knows_work_ && flops > 0;
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    measured_tflops_.push_back(flops / times_ns[i] * 1e-3);
    predicted_tflops_.push_back(flops / std::exp(predicted_log[i]) * 1e-3);
    measured_log_.push_back(std::log(times_ns[i]));
    predicted_log_.push_back(predicted_log[i]);
  }
}

CkMetrics CkMetricsBuilder::take() const {
  CkMetrics out;
  out.problems = efficiencies_.size();
  const bool empty = efficiencies_.empty();
  out.mean_efficiency = empty ? kNan : mean(efficiencies_);
  out.median_efficiency = quantile(efficiencies_, 0.5);
  out.p10_efficiency = quantile(efficiencies_, 0.1);
  out.min_efficiency = quantile(efficiencies_, 0);
  const auto problems = static_cast<double>(out.problems);
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    out.top_k[i] = empty ? kNan : static_cast<double>(hits_[i]) / problems;
  }
  out.r2_log = r_squared(measured_log_, predicted_log_);
  out.r2 = out.rmse_tflops = out.mae_tflops = kNan;
  if (knows_work_ && !empty) {
    out.r2 = r_squared(measured_tflops_, predicted_tflops_);
    double squares = 0;
    double sizes = 0;
    for (std::size_t i = 0; i < measured_tflops_.size(); ++i) {
      const double error = measured_tflops_[i] - predicted_tflops_[i];
      squares += error * error;
      sizes += std::fabs(error);
    }
    const auto rows = static_cast<double>(measured_tflops_.size());
    out.rmse_tflops = std::sqrt(squares / rows);
    out.mae_tflops = sizes / rows;
  }
  return out;
}

}  // namespace foretune
