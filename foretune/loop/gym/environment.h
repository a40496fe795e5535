// Tuning a loop nest step by step: what is to be learnt or searched, as an environment in the sense
// of reinforcement learning. A step applies an action of a set to the state and is rewarded by what
// it gained of the machine's peak.
//
//   CachedEvaluator cached(evaluator);
//   FORETUNE_TRY(auto environment,
//                Environment::create(computation, ActionSet(), cached, peak_gflops));
//   while (!environment.is_over()) {
//     const std::size_t choice = policy(environment.state(), environment.legal_actions());
//     FORETUNE_TRY(const StepResult result, environment.step(environment.actions()[choice]));
//   }
//   environment.best().state   // of all states on the way, the start included
//
// The reward is (GFLOPS after - GFLOPS before) / peak, so the rewards of an episode add up to what
// its last state has over its start. What the evaluator refuses has 0 GFLOPS: no wrong or broken
// schedule is ever worth more than nothing. An action that leaves the nest as it is costs no
// evaluation.
//
// Thread safety: one thread at a time; environments share nothing but their evaluator.
// Cost: of a step with a cached evaluation about a microsecond.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/gym/evaluator.h"

namespace foretune::loop::gym {

struct EnvironmentOptions {
  std::size_t max_loops = kLoopTuneLimits.max_loops;
  std::size_t max_steps = 10;  // of an episode
};

struct StepResult {
  double reward = 0;
  bool done = false;       // stopped, or at a state with no legal action
  bool truncated = false;  // as many steps as there may be, without being done
  std::string reason;      // why the evaluator refused the state's schedule; empty where it did not
};

// An action that was taken.
struct Taken {
  CursorAction action = CursorAction::kStop;
  double gflops = 0;  // after it
  double reward = 0;
};

class Environment {
 public:
  // The evaluator is of this computation and has to outlive the environment; the start is evaluated
  // at once. Errors: kInvalidArgument for options and a peak that make no sense, kUnsupported for a
  // computation whose plain nest has more loops than there may be, and those of its check().
  static Result<Environment> create(loop::Computation computation, ActionSet actions,
                                    Evaluator& evaluator, double peak_gflops,
                                    EnvironmentOptions options = {});

  // Starts the next episode, at the plain nest.
  const State& reset();
  // At another state. Errors: as for create(), for a state that is none of this computation; then
  // nothing changes.
  Status reset(State start);

  // Of each action of the set. All false when the episode is over.
  [[nodiscard]] const std::vector<bool>& legal_actions() const { return legal_; }
  // Errors: kInvalidArgument for an action that is not in the set or after the end of the episode,
  // and why an action is not legal; then nothing changes.
  Result<StepResult> step(CursorAction action);

  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] const State& state() const { return state_; }
  // Counted: 0 where the schedule was refused.
  [[nodiscard]] double gflops() const { return gflops_; }
  // Of one run; infinite where the schedule was refused.
  [[nodiscard]] double runtime_seconds() const;
  [[nodiscard]] double runtime_ns() const { return 1e9 * runtime_seconds(); }
  // As the evaluator told it.
  [[nodiscard]] const Evaluated& evaluated() const { return evaluated_; }
  // Of this episode, oldest first.
  [[nodiscard]] const std::vector<Taken>& history() const { return history_; }
  [[nodiscard]] std::vector<CursorAction> actions_taken() const;

  struct Best {
    State state;
    double gflops = 0;
    double seconds = 0;
    std::size_t steps = 0;  // how many actions of the history lead to it
  };
  // The first of the fastest states of this episode. The start, with 0 GFLOPS, where all that was
  // evaluated was refused.
  [[nodiscard]] const Best& best() const { return best_; }

  [[nodiscard]] const loop::Computation& computation() const { return computation_; }
  [[nodiscard]] const ActionSet& actions() const { return actions_; }
  [[nodiscard]] const EnvironmentOptions& options() const { return options_; }
  [[nodiscard]] double peak_gflops() const { return peak_gflops_; }

 private:
  Environment(loop::Computation computation, ActionSet actions, Evaluator& evaluator,
              double peak_gflops, EnvironmentOptions options);
  void begin(State start);
  void evaluate();
  // Updates the mask; whether any action is legal.
  bool find_legal();

  loop::Computation computation_;
  ActionSet actions_;
  Evaluator* evaluator_;
  double peak_gflops_;
  EnvironmentOptions options_;

  State state_;
  Evaluated evaluated_;  // of the state's nest
  double gflops_ = 0;
  std::vector<bool> legal_;
  bool is_over_ = false;
  std::vector<Taken> history_;
  Best best_;
};

}  // namespace foretune::loop::gym
