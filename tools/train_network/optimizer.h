// Adam over one flat buffer, and the schedule that lowers its learning rate on plateaus.
// Thread safety: one thread at a time.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "options.h"

namespace foretune::network_training {

// Adam (Kingma and Ba 2015) as in torch.optim.Adam, where weight decay is part of the gradient; or
// AdamW (Loshchilov and Hutter 2019), where weight decay is subtracted from the weights instead.
class Adam {
 public:
  Adam(const TrainOptions& options, const at::Tensor& parameters);
  // Gradients longer than the clip are shortened first.
  void step(const at::Tensor& parameters, const at::Tensor& gradients, double learning_rate);

  // The state that a checkpoint has to hold.
  struct State {
    at::Tensor mean;
    at::Tensor square;
    std::int64_t steps = 0;
  };
  State& state() { return state_; }

 private:
  double weight_decay_;
  double clip_;
  bool is_decoupled_;
  State state_;
};

// Works as torch.optim.lr_scheduler.ReduceLROnPlateau with a factor of 0.5 and a floor of 1e-6.
struct PlateauSchedule {
  double learning_rate = 0;
  double best = 0;
  bool has_best = false;
  std::uint32_t bad_epochs = 0;
  void after_epoch(double loss, std::uint32_t patience);
};

}  // namespace foretune::network_training
