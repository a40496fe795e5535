// The schedules of a computation as a space that is built step by step: what strategies walk and
// data sets store. A config is the nest, three words for each loop, mark, block and pack, and where
// it is not at the outermost loop the cursor; a nest is one config, however it came about.
//
//   const auto space = ScheduleSpace::of_cursor(computation, ActionSet());
//   FORETUNE_TRY(auto strategy, create_walk("beam-bfs", *space, {.max_steps = 10}));
//   FORETUNE_TRY(const loop::Nest nest, space->nest(config));
//
// Thread safety: const members may be called from several threads. Cost: below a microsecond an
// action.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/environment/cursor_actions.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"
#include "foretune/space/space.h"

namespace foretune::autoschedule {

class ScheduleSpace : public Space, public SequentialSpace {
 public:
  // LoopTune's: actions about the loop at a cursor. States are schedules with a cursor, and where
  // it is has no meaning. `start` is a nest of the computation.
  static std::unique_ptr<ScheduleSpace> of_cursor(
      const loop::Computation& computation, const environment::ActionSet& actions,
      const loop::Limits& limits = environment::kDefaultLimits);
  static std::unique_ptr<ScheduleSpace> of_cursor(const loop::Computation& computation,
                                                  const environment::ActionSet& actions,
                                                  const loop::Limits& limits, loop::Nest start);
  // Actions that name their loop: splits by small numbers and by multiples of `unit`'s lanes,
  // swaps, moves to the outside, merges, lanes, register blocks and packs.
  static std::unique_ptr<ScheduleSpace> of_loops(const loop::Computation& computation,
                                                 const loop::VectorUnit& unit,
                                                 const loop::Limits& limits = {.max_loops = 10});

  [[nodiscard]] const loop::Computation& computation() const { return computation_; }
  // Errors: kInvalidArgument for words that are no schedule, and why an action is not legal.
  [[nodiscard]] Result<loop::Nest> nest(const Config& config) const;
  [[nodiscard]] Result<environment::State> state(const Config& config) const;
  [[nodiscard]] Config config(const environment::State& state) const;
  // The schedule, as loop::parse_schedule() reads it; empty for the plain nest and for no schedule.
  [[nodiscard]] std::string text(const Config& config) const;

  const ConfigSchema& schema() const override { return schema_; }
  Support why_not(const Config& config) const override;
  Result<Config> sample(Rng& rng) const override;
  // One action away.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override;
  const SequentialSpace* sequential() const override { return this; }
  Config start() const override;
  std::vector<bool> legal_actions(const Config& state) const override;
  Result<Config> apply(const Config& state, std::size_t action) const override;

 protected:
  ScheduleSpace(const loop::Computation& computation, const loop::Limits& limits, loop::Nest start);

  // One action, of those that the class has.
  [[nodiscard]] virtual Result<environment::State> step(const environment::State& state,
                                                        std::size_t action) const = 0;
  [[nodiscard]] virtual bool is_legal(const environment::State& state,
                                      std::size_t action) const = 0;
  [[nodiscard]] const loop::Limits& limits() const { return limits_; }

 private:
  loop::Computation computation_;
  loop::Limits limits_;
  loop::Nest start_;
  ConfigSchema schema_;
};

}  // namespace foretune::autoschedule
