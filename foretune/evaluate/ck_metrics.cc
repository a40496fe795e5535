#include "foretune/evaluate/ck_metrics.h"

#include <cmath>

#include "foretune/base/prediction_statistics.h"
#include "foretune/base/statistics.h"

namespace foretune {
void CkMetricsBuilder::add(std::span<const double> times_ns, std::span<const double> predicted_log,
                           double flops) {
  if (times_ns.empty()) {
    return;
  }
  efficiencies_.push_back(pick_efficiency(times_ns, predicted_log));
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
  out.mean_efficiency = empty ? kNotANumber : mean(efficiencies_);
  out.median_efficiency = quantile(efficiencies_, 0.5);
  out.p10_efficiency = quantile(efficiencies_, 0.1);
  out.min_efficiency = quantile(efficiencies_, 0);
  const auto problems = static_cast<double>(out.problems);
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    out.top_k[i] = empty ? kNotANumber : static_cast<double>(hits_[i]) / problems;
  }
  out.r2_log = r_squared(measured_log_, predicted_log_);
  out.r2 = out.rmse_tflops = out.mae_tflops = kNotANumber;
  if (knows_work_ && !empty) {
    const PredictionErrors errors = prediction_errors(measured_tflops_, predicted_tflops_);
    out.r2 = errors.r2;
    out.rmse_tflops = errors.rmse;
    out.mae_tflops = errors.mae;
  }
  return out;
}

}  // namespace foretune
