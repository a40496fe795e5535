#include "optimizer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace foretune::network_training {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

}  // namespace

Adam::Adam(const TrainOptions& options, const at::Tensor& parameters)
    : weight_decay_(options.weight_decay),
      clip_(options.clip),
      is_decoupled_(options.optimizer == Optimizer::kAdamW),
      state_{.mean = at::zeros_like(parameters), .square = at::zeros_like(parameters)} {}

void Adam::step(const at::Tensor& parameters, const at::Tensor& gradients, double learning_rate) {
  const at::NoGradGuard no_grad;
  ++state_.steps;
  if (clip_ > 0) {
    // Without waiting for the device to tell the norm.
    gradients.mul_((clip_ / (gradients.norm() + 1e-6)).clamp_max(1));
  }
  if (weight_decay_ > 0) {
    if (is_decoupled_) {
      parameters.mul_(1 - learning_rate * weight_decay_);
    } else {
      gradients.add_(parameters, weight_decay_);
    }
  }
  const auto steps = static_cast<double>(state_.steps);
  state_.mean.mul_(kBeta1).add_(gradients, 1 - kBeta1);
  state_.square.mul_(kBeta2).addcmul_(gradients, gradients, 1 - kBeta2);
  const at::Tensor divisor =
      (state_.square.sqrt() / std::sqrt(1 - std::pow(kBeta2, steps))).add_(kEpsilon);
  parameters.addcdiv_(state_.mean, divisor, -learning_rate / (1 - std::pow(kBeta1, steps)));
}

void PlateauSchedule::after_epoch(double loss, std::uint32_t patience) {
  constexpr double kFactor = 0.5;
  constexpr double kFloor = 1e-6;
  constexpr double kThreshold = 1e-4;
  if (!has_best || loss < best * (1 - kThreshold)) {
    best = loss;
    has_best = true;
    bad_epochs = 0;
    return;
  }
  if (++bad_epochs > patience) {
    learning_rate = std::min(learning_rate, std::max(learning_rate * kFactor, kFloor));
    bad_epochs = 0;
  }
}

}  // namespace foretune::network_training
