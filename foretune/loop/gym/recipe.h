// The constant list of actions that LoopTune's policy mostly takes, as schedules to measure: what
// 22 of its 25 published trajectories begin with, and how most go on (Grubisic et al. 2023).
//
// Thread safety: free function.
#pragma once

#include <vector>

#include "foretune/loop/schedule_space.h"

namespace foretune::loop::gym {

// After each action, from the space's start on. An action that is not legal there does nothing.
std::vector<Config> recipe_configs(const ScheduleSpace& space);

}  // namespace foretune::loop::gym
