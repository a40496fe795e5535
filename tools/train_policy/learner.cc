#include "learner.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

namespace foretune::policy_training {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-5;  // as implementations of PPO take it
constexpr double kLongestGradient = 0.5;

}  // namespace

FlatAdam::FlatAdam(const at::Tensor& parameters)
    : mean(at::zeros_like(parameters)), square(at::zeros_like(parameters)) {}

void FlatAdam::step(const at::Tensor& parameters, const at::Tensor& gradients, double rate) {
  const at::NoGradGuard no_grad;
  ++steps;
  gradients.mul_((kLongestGradient / (gradients.norm() + 1e-6)).clamp_max(1));
  const auto count = static_cast<double>(steps);
  mean.mul_(kBeta1).add_(gradients, 1 - kBeta1);
  square.mul_(kBeta2).addcmul_(gradients, gradients, 1 - kBeta2);
  const at::Tensor divisor =
      (square.sqrt() / std::sqrt(1 - std::pow(kBeta2, count))).add_(kEpsilon);
  parameters.addcdiv_(mean, divisor, -rate / (1 - std::pow(kBeta1, count)));
}

}  // namespace foretune::policy_training
