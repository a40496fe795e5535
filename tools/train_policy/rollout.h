// Actors: they play episodes by a snapshot of the policy, in threads of their own, and hand over
// what happened in segments of a fixed number of steps.
//
// Thread safety: as each class says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/loop/gym/nest_task.h"
#include "foretune/loop/gym/vector_environment.h"
#include "foretune/model/policy/policy_network.h"
#include "torch_policy.h"

namespace foretune::policy_training {

// Steps of several episodes side by side: row t * episodes + e is step t of column e.
struct Segment {
  std::size_t episodes = 0;
  std::size_t steps = 0;
  StateRows states;  // (steps + 1) * episodes: the last ones are what the next step would see
  std::vector<std::uint32_t> actions;
  std::vector<float> log_probabilities;  // of the actor's policy; 0 where it does not draw by them
  std::vector<float> values;             // of the states, (steps + 1) * episodes
  std::vector<float> rewards;
  std::vector<std::uint8_t> ends;
  std::vector<float> finals;  // ln of the best share of the peak of each episode that ended
};

// The best episode of every task so far, for imitation.
// Thread safety: any number of threads.
class Elites {
 public:
  struct Episode {
    double log_share = 0;
    StateRows states;
    std::vector<std::uint32_t> actions;
  };
  explicit Elites(std::size_t tasks) : best_(tasks) {}
  explicit Elites(std::vector<Episode> best) : best_(std::move(best)) {}
  // Keeps the episode where it is clearly faster than the one so far, or as fast and shorter.
  void offer(std::size_t task, Episode episode);
  // Appends up to `count` pairs of states and actions, drawn by `rng`.
  void sample(std::size_t count, Rng& rng, StateRows& states,
              std::vector<std::uint32_t>& actions) const;
  // One for each task; without actions where there is none yet.
  [[nodiscard]] std::vector<Episode> all() const;
  void set(std::size_t task, Episode episode);
  // Calls fix_constants() with the ranges of all inputs in all episodes. Without an episode the
  // network stays as it is.
  void fix_constants_of(PolicyNetwork& network) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Episode> best_;
};

struct ActorOptions {
  loop::gym::VectorOptions environment;
  std::size_t steps = 24;  // of a segment
  // Share of random actions instead of the policy's best, one for each episode; empty: actions are
  // drawn by their probabilities.
  std::vector<double> epsilon;
};

// Plays one segment of fresh episodes. The same seed and the same answers of the tasks give the
// same segment. Errors: those of VectorEnvironment::step().
Result<Segment> play(const std::vector<loop::gym::NestTask*>& tasks, const PolicyNetwork& policy,
                     const ActorOptions& options, std::uint64_t seed, Elites* elites);

// Several actors at once: one segment each, in their order. Seeds follow from `seed`.
Result<std::vector<Segment>> play_all(const std::vector<loop::gym::NestTask*>& tasks,
                                      const PolicyNetwork& policy, const ActorOptions& options,
                                      std::size_t actors, std::uint64_t seed, Elites* elites);

}  // namespace foretune::policy_training
