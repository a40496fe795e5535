// Learners turn segments of play into better parameters. One that follows the policy uses a segment
// once; one that learns values of actions keeps what happened and draws from it.
//
// Thread safety: one thread at a time. Errors: libtorch's exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "options.h"
#include "rollout.h"
#include "torch_policy.h"

namespace foretune::policy_training {

// Means over the last call of learn().
struct LearnStats {
  double loss = 0;
  double value_loss = 0;
  double entropy = 0;  // of the policy, in nats; 0 for learners of values of actions
};

// The Adam of one flat buffer, with gradients clipped by their norm.
class FlatAdam {
 public:
  explicit FlatAdam(const at::Tensor& parameters);
  void step(const at::Tensor& parameters, const at::Tensor& gradients, double rate);
  // For checkpoints: mean and square of gradients, and the steps taken.
  at::Tensor mean;
  at::Tensor square;
  std::int64_t steps = 0;
};

class Learner {
 public:
  virtual ~Learner() = default;
  // Learns from segments that were just played. `progress` is the share of the run that is over.
  virtual LearnStats learn(const std::vector<Segment>& segments, const Elites& elites,
                           double progress, std::uint64_t seed) = 0;
  [[nodiscard]] virtual FlatAdam& optimizer() = 0;
};

// Ways of following the policy: PPO (Schulman et al. 2017), APPO, A2C and A3C (Mnih et al. 2016),
// IMPALA (Espeholt et al. 2018).
std::unique_ptr<Learner> make_on_policy_learner(TorchPolicy& policy,
                                                const TrainPolicyOptions& options);
// Double, dueling DQN with returns over several steps and prioritised replay (Hessel et al. 2018),
// and the same with several actors, each exploring by its own share (Horgan et al. 2018).
std::unique_ptr<Learner> make_q_learner(TorchPolicy& policy, const TrainPolicyOptions& options);

}  // namespace foretune::policy_training
