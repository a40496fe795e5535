// An environment in the sense of reinforcement learning for tuning a loop nest step by step, by
// learning or search. A step applies an action of a set to the state. Its reward is the gain as a
// share of the machine's peak.
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
// The reward is (GFLOPS after - GFLOPS before) / peak, so the rewards per episode add up to the
// gain of its last state over its start. A schedule that the evaluator refuses has 0 GFLOPS: no
// wrong or broken schedule is ever worth more than nothing. An action that does not change the nest
// costs no evaluation.
//
// Thread safety: one thread at a time; environments share nothing but their evaluator.
// Cost: about a microsecond for a step with a cached evaluation.
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
  bool truncated = false;  // max_steps were taken without being done
  std::string reason;      // why the evaluator refused the state's schedule; else empty
};

// An applied action.
struct Taken {
  CursorAction action = CursorAction::kStop;
  double gflops = 0;  // after it
  double reward = 0;
};

class Environment {
 public:
  // The evaluator is for this computation and must outlive the environment. The start is evaluated
  // at once. Errors: kInvalidArgument for an invalid peak or options, kUnsupported for a
  // computation whose plain nest has more than max_loops loops, and those of its check().
  static Result<Environment> create(loop::Computation computation, ActionSet actions,
                                    Evaluator& evaluator, double peak_gflops,
                                    EnvironmentOptions options = {});

  // Starts the next episode, at the plain nest.
  const State& reset();
  // Starts the next episode at another state. Errors: as for create(), for a state of another
  // computation; then nothing changes.
  Status reset(State start);

  // Returns the legality of each action of the set; all false when the episode is over.
  [[nodiscard]] const std::vector<bool>& legal_actions() const { return legal_; }
  // Applies an action. Errors: kInvalidArgument for an action that is not in the set or after the
  // end of the episode, and the reason for an illegal action; then nothing changes.
  Result<StepResult> step(CursorAction action);

  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] const State& state() const { return state_; }
  // Returns Evaluated::counted_gflops(), which is 0 where the schedule was refused.
  [[nodiscard]] double gflops() const { return gflops_; }
  // Returns the time of one run; infinite where the schedule was refused.
  [[nodiscard]] double runtime_seconds() const;
  [[nodiscard]] double runtime_ns() const { return 1e9 * runtime_seconds(); }
  // Returns the evaluator's result.
  [[nodiscard]] const Evaluated& evaluated() const { return evaluated_; }
  // Returns the actions of this episode, oldest first.
  [[nodiscard]] const std::vector<Taken>& history() const { return history_; }
  [[nodiscard]] std::vector<CursorAction> actions_taken() const;

  struct Best {
    State state;
    double gflops = 0;
    double seconds = 0;
    std::size_t steps = 0;  // number of actions of the history that lead to it
  };
  // Returns the first of the fastest states of this episode; the start, with 0 GFLOPS, where the
  // evaluator refused all schedules.
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
  // Updates the mask. Returns true when any action is legal.
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
