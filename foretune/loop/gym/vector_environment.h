// Many episodes at once over many computations, for agents that choose by loop_actions.h: one step
// takes an action of each episode, and what agents see lies in contiguous arrays.
//
//   VectorEnvironment environment(tasks, {.episodes = 64}, seed);
//   while (learning) {
//     policy(environment.loops(), environment.whole(), environment.masks(), actions);
//     FORETUNE_TRY_STATUS(environment.step(actions));
//     ... environment.rewards(), environment.ends() ...
//   }
//
// An episode starts from the plain nest of a task drawn at random. After its end the arrays show
// the next episode's start, as Gymnasium's vector environments with autoreset in the same step do.
//
// Thread safety: one thread at a time; environments in several threads may share tasks. Cost: a
// fraction of a microsecond a step and episode, and the measurement of a new nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/loop/gym/nest_task.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/policy_observation.h"

namespace foretune::loop::gym {

enum class RewardKind : std::uint8_t {
  kShare,  // change of GFLOP/s over the peak, LoopTune's
  kLog,    // ln of the speed-up of a step
  kBest,   // what the step adds to ln of the best speed of the episode
};
// Errors: kInvalidArgument for a name that is none of share, log, best.
Result<RewardKind> parse_reward_kind(std::string_view name);

struct VectorOptions {
  std::size_t episodes = 32;
  std::size_t max_steps = 12;  // of an episode
  RewardKind reward = RewardKind::kLog;
  // Taken off the reward of every step whose nest nobody measured before.
  double price = 0;
};

class VectorEnvironment {
 public:
  static constexpr std::size_t kLoopFloats = PolicyObserver::kLoopFloats;

  // The tasks, at least one, must outlive it.
  VectorEnvironment(std::vector<NestTask*> tasks, const VectorOptions& options, std::uint64_t seed);

  [[nodiscard]] std::size_t episodes() const { return options_.episodes; }
  // f32 [episodes][LoopActions::kLevels][PolicyObserver::kLoopColumns]
  [[nodiscard]] std::span<const float> loops() const { return loops_; }
  // f32 [episodes][PolicyObserver::kWholeColumns]
  [[nodiscard]] std::span<const float> whole() const { return whole_; }
  // u8 [episodes][LoopActions::kCount]: 1 for a legal action
  [[nodiscard]] std::span<const std::uint8_t> masks() const { return masks_; }
  // Loops of each nest.
  [[nodiscard]] std::span<const std::uint8_t> counts() const { return counts_; }

  // Takes an action of each episode. Errors: kInvalidArgument for an action that its mask forbids;
  // then nothing changes.
  Status step(std::span<const std::uint32_t> actions);

  // One for each episode, of the last step.
  [[nodiscard]] std::span<const float> rewards() const { return rewards_; }
  [[nodiscard]] std::span<const std::uint8_t> ends() const { return ends_; }
  // ln of the share of the peak of the nest that the step led to.
  [[nodiscard]] std::span<const float> log_shares() const { return shares_; }
  // The task of each running episode, and of the one that the last step belonged to.
  [[nodiscard]] std::span<const std::uint32_t> tasks() const { return task_of_; }
  [[nodiscard]] std::span<const std::uint32_t> stepped_tasks() const { return stepped_task_; }
  [[nodiscard]] Nest nest(std::size_t episode) const {
    return pool_[task_of_[episode]]->nest(states_[episode].nest);
  }

 private:
  struct State {
    NestTask::NestId nest = 0;
    std::size_t steps = 0;
    double log_share = 0;  // of the nest, or as far below the start as a refused one counts
    double best = 0;
  };
  void begin(std::size_t episode);
  void observe(std::size_t episode);
  [[nodiscard]] double reward_of(const State& before, const State& after) const;

  std::vector<NestTask*> pool_;
  VectorOptions options_;
  Rng rng_;
  std::vector<State> states_;
  std::vector<double> starts_;
  std::vector<std::uint32_t> task_of_;
  std::vector<std::uint32_t> stepped_task_;
  std::vector<float> loops_;
  std::vector<float> whole_;
  std::vector<std::uint8_t> masks_;
  std::vector<std::uint8_t> counts_;
  std::vector<float> rewards_;
  std::vector<std::uint8_t> ends_;
  std::vector<float> shares_;
};

}  // namespace foretune::loop::gym
