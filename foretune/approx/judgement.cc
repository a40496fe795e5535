#include "foretune/approx/judgement.h"

#include <cmath>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune::approx {

ModelJudgement judge_models(const Effects& effects, const LossModel& model,
                            std::span<const LossSample> samples,
                            std::span<const double> predicted_ns, std::span<const double> ns) {
  FORETUNE_CHECK(samples.size() == ns.size() && predicted_ns.size() == ns.size());
  std::vector<double> losses;
  std::vector<double> p1;
  std::vector<double> p2;
  std::vector<double> fitted;
  std::vector<double> time_errors;
  ChangeSum sum(effects);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sum.choose_all(samples[i].choices);
    const LossTerms terms = sum.losses(model.interplay());
    losses.push_back(samples[i].loss);
    p1.push_back(terms.values[LossTerms::kP1]);
    p2.push_back(terms.values[LossTerms::kP2]);
    fitted.push_back(model.loss(terms));
    time_errors.push_back(std::abs(predicted_ns[i] / ns[i] - 1));
  }
  const auto error = [&](const std::vector<double>& predicted) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      errors.push_back(std::abs(predicted[i] - losses[i]));
    }
    return errors.empty() ? kNotANumber : mean(errors);
  };
  return {.networks = samples.size(),
          .p1_error = error(p1),
          .p1_spearman = spearman(p1, losses),
          .p2_error = error(p2),
          .p2_spearman = spearman(p2, losses),
          .fit_error = error(fitted),
          .fit_spearman = spearman(fitted, losses),
          .time_error = time_errors.empty() ? kNotANumber : mean(time_errors)};
}

}  // namespace foretune::approx
