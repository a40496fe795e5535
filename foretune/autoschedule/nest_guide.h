// Guides of searches for schedules: rows of nests, and what measurements of other computations
// teach (tune/tree_guide.h).
//
//   TreeGuide guide(nest_rows(*space, unit), {}, regression_prior(prior));
//
// Thread safety: free functions.
#pragma once

#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/models/train/regression.h"
#include "foretune/search/strategy.h"
#include "foretune/tune/tree_guide.h"

namespace foretune::autoschedule {

using loop::ScheduleSpace;

// The columns of loop/nest_features.h; what cannot be compiled is known to fail. `space` has to
// outlive them.
GuideRows nest_rows(const ScheduleSpace& space, const loop::VectorUnit& unit);

// Measurements of schedules of one computation.
struct GuideLesson {
  const ScheduleSpace* space = nullptr;
  std::vector<Trial> trials;  // seconds of one run
};

// Trains on measurements of other computations: the logarithm of the time over the best of each.
// Errors: kInvalidArgument without a trial that has a value.
Result<Regression> learn_prior(std::span<const GuideLesson> lessons, const loop::VectorUnit& unit,
                               const RegressionOptions& options);
// Empty for nullptr. `prior` has to outlive it.
GuidePrior regression_prior(const Regression* prior);

}  // namespace foretune::autoschedule
