#include "tools/train_network/optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace foretune::network_training {
namespace {

// One parameter, by the formulas of the papers.
class PlainAdam {
 public:
  double step(double x, double gradient, double rate, double decay, bool is_decoupled) {
    ++steps_;
    x -= is_decoupled ? rate * decay * x : 0;
    gradient += is_decoupled ? 0 : decay * x;
    mean_ = 0.9 * mean_ + 0.1 * gradient;
    square_ = 0.999 * square_ + 0.001 * gradient * gradient;
    const double mean = mean_ / (1 - std::pow(0.9, steps_));
    const double square = square_ / (1 - std::pow(0.999, steps_));
    return x - rate * mean / (std::sqrt(square) + 1e-8);
  }

 private:
  double mean_ = 0;
  double square_ = 0;
  double steps_ = 0;
};

TEST(OptimizerTest, AdamAndAdamWFollowTheirFormulas) {
  for (const Optimizer kind : {Optimizer::kAdam, Optimizer::kAdamW}) {
    TrainOptions options;
    options.optimizer = kind;
    options.weight_decay = 0.1;
    options.clip = 0;
    const at::Tensor parameter = at::ones({1}, at::kDouble);
    Adam adam(options, parameter);
    PlainAdam plain;
    double expected = 1;
    for (int step = 0; step < 20; ++step) {
      const double gradient = std::sin(step) + expected;
      adam.step(parameter, at::full({1}, gradient, at::kDouble), 0.01);
      expected = plain.step(expected, gradient, 0.01, 0.1, kind == Optimizer::kAdamW);
      ASSERT_NEAR(parameter.item<double>(), expected, 1e-12);
    }
  }
}

TEST(OptimizerTest, ShortensLongGradientsOnly) {
  TrainOptions options;
  options.weight_decay = 0;
  options.clip = 1;
  const at::Tensor parameters = at::zeros({2}, at::kDouble);
  Adam adam(options, parameters);
  at::Tensor gradients = at::full({2}, 0.5, at::kDouble);
  adam.step(parameters, gradients, 0.01);
  EXPECT_NEAR(gradients[0].item<double>(), 0.5, 1e-12);
  gradients.fill_(30);
  adam.step(parameters, gradients, 0.01);
  EXPECT_NEAR(gradients.norm().item<double>(), 1, 1e-6);
}

TEST(OptimizerTest, TheRateHalvesOnPlateausDownToItsFloor) {
  PlateauSchedule schedule{.learning_rate = 4e-6};
  for (const double loss : {1.0, 0.9, 0.91, 0.9}) {
    schedule.after_epoch(loss, 2);
    EXPECT_EQ(schedule.learning_rate, 4e-6);
  }
  schedule.after_epoch(0.9, 2);  // the third without progress
  EXPECT_EQ(schedule.learning_rate, 2e-6);
  for (int i = 0; i < 20; ++i) {
    schedule.after_epoch(0.9, 2);
  }
  EXPECT_EQ(schedule.learning_rate, 1e-6);
}

}  // namespace
}  // namespace foretune::network_training
