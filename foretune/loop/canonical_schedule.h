// The one list of loop actions that stands for a nest: two nests are equal exactly when their lists
// are, however they came about. It is what schedules that were found step by step are stored and
// printed as.
//
//   const std::vector<Action> actions = schedule_of(computation, nest);
//   to_text(computation, actions)   "split m0 4, swap m1, unroll m1"
//
// The list is a way to the nest, not the shortest: all splits by variable, then every loop to its
// level from the outside, then marks, the register block and packs.
// Thread safety: free functions. Cost: a microsecond or two.
#pragma once

#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// From the plain nest of the computation to `nest`, which actions can lead to (check()).
std::vector<Action> schedule_of(const Computation& computation, const Nest& nest);

}  // namespace foretune::loop
