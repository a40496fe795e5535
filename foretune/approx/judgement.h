// Compares the models of quality and time with networks that were measured.
//
//   const ModelJudgement judgement = judge_models(effects, losses, samples, predicted_ns, ns);
//
// Thread safety: a free function and plain values. Cost: two passes over the rows of outputs for
// each network.
#pragma once

#include <cstddef>
#include <span>

#include "foretune/approx/effects.h"
#include "foretune/approx/loss_model.h"

namespace foretune::approx {

// The models beside what was measured, on random networks that they never saw and that lose little
// enough to teach them.
struct ModelJudgement {
  std::size_t networks = 0;
  double p1_error = 0;  // mean absolute error of P1, in the metric's unit
  double p1_spearman = 0;
  double p2_error = 0;
  double p2_spearman = 0;
  double fit_error = 0;  // of the model that was chosen
  double fit_spearman = 0;
  double time_error = 0;  // mean relative error of the predicted time
};

// Spans have the same length.
[[nodiscard]] ModelJudgement judge_models(const Effects& effects, const LossModel& model,
                                          std::span<const LossSample> samples,
                                          std::span<const double> predicted_ns,
                                          std::span<const double> ns);

}  // namespace foretune::approx
