// LoopTune's actions as a space that is built step by step: states are schedules with a cursor, and
// where it is has no meaning.
//
//   const auto space = cursor_space(computation, unit, ActionSet());
//   FORETUNE_TRY(auto strategy, create_walk("beam-bfs", *space, {.max_steps = 10}));
//
// Thread safety and cost: as schedule_space.h says.
#pragma once

#include <memory>
#include <optional>

#include "foretune/loop/computation.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/schedule_space.h"

namespace foretune::loop {

// `start` is a nest of the computation; the plain one unless it is given.
std::unique_ptr<ScheduleSpace> cursor_space(const Computation& computation, const VectorUnit& unit,
                                            const ActionSet& actions,
                                            std::optional<Nest> start = std::nullopt,
                                            const Limits& limits = kLoopTuneLimits);

}  // namespace foretune::loop
