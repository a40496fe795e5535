// LoopTune's actions as a space that is built step by step: states are schedules with a cursor, and
// where it is has no meaning.
//
//   const auto space = cursor_space(computation, ActionSet());
//   FORETUNE_TRY(auto strategy, create_walk("beam-bfs", *space, {.max_steps = 10}));
//
// Thread safety and cost: as loop/schedule_space.h says.
#pragma once

#include <memory>

#include "foretune/environment/cursor_actions.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/schedule_space.h"

namespace foretune::environment {

std::unique_ptr<loop::ScheduleSpace> cursor_space(const loop::Computation& computation,
                                                  const ActionSet& actions,
                                                  const loop::Limits& limits = kDefaultLimits);
// Starts at `start`, a nest of the computation.
std::unique_ptr<loop::ScheduleSpace> cursor_space(const loop::Computation& computation,
                                                  const ActionSet& actions,
                                                  const loop::Limits& limits, loop::Nest start);

}  // namespace foretune::environment
