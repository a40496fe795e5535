// The schedules of a computation as a space that is built step by step: what strategies walk and
// data sets store. A config is the nest, three words for each loop, mark, block and pack, and where
// it is not at the outermost loop the cursor; a nest is one config, however it came about.
//
//   const auto space = ScheduleSpace::of_loops(computation, VectorUnit::of(best_cpu_isa()));
//   FORETUNE_TRY(auto strategy, create_walk("beam-bfs", *space, {.max_steps = 10}));
//   FORETUNE_TRY(const Nest nest, space->nest(config));
//
// Thread safety: const members may be called from several threads. Cost: below a microsecond an
// action.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"
#include "foretune/space/space.h"

namespace foretune::loop {

// "loop-nest", version 1: of kind sequence.
const ConfigSchema& schedule_schema();

class ScheduleSpace : public Space, public SequentialSpace {
 public:
  // Actions that name their loop: splits by small numbers and by multiples of `unit`'s lanes,
  // swaps, moves to the outside, merges, lanes, register blocks and packs. `start` is a nest of the
  // computation; the plain one unless it is given.
  static std::unique_ptr<ScheduleSpace> of_loops(const Computation& computation,
                                                 const VectorUnit& unit,
                                                 std::optional<Nest> start = std::nullopt,
                                                 const Limits& limits = {.max_loops = 10});

  [[nodiscard]] const Computation& computation() const { return computation_; }
  // Errors: kInvalidArgument for words that are no schedule, and why an action is not legal.
  [[nodiscard]] Result<Nest> nest(const Config& config) const;
  [[nodiscard]] Result<State> state(const Config& config) const;
  [[nodiscard]] Config config(const State& state) const;
  // The schedule, as parse_schedule() reads it; empty for the plain nest and for no schedule.
  [[nodiscard]] std::string text(const Config& config) const;

  const ConfigSchema& schema() const override { return schedule_schema(); }
  Support why_not(const Config& config) const override;
  Result<Config> sample(Rng& rng) const override;
  // One action away.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override;
  // The textbook's, those with more loops than are allowed left out.
  std::vector<Config> proposals(std::size_t count) const override;
  // text(), or "the plain nest".
  std::string describe(const Config& config) const override;
  const SequentialSpace* sequential() const override { return this; }
  Config start() const override;
  std::vector<bool> legal_actions(const Config& state) const override;
  Result<Config> apply(const Config& state, std::size_t action) const override;
  // By the canonical schedule, from the plain nest on.
  std::vector<Config> way_to(const Config& config) const override;

 protected:
  ScheduleSpace(const Computation& computation, const VectorUnit& unit, const Limits& limits,
                std::optional<Nest> start);

  // One action, of those that the class has.
  [[nodiscard]] virtual Result<State> step(const State& state, std::size_t action) const = 0;
  [[nodiscard]] virtual bool is_legal(const State& state, std::size_t action) const = 0;
  [[nodiscard]] const Limits& limits() const { return limits_; }

 private:
  Computation computation_;
  VectorUnit unit_;
  Limits limits_;
  Nest start_;
};

}  // namespace foretune::loop
