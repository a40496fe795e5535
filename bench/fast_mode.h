// Measures the time and the loss of the fast mode over folds by group: on each fold, trains the
// exact model and distils the fast one from it; both pick for the held-out problems.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/dataset/dataset.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune::bench {

// Returns the times in ns of the configs on the problem, in order; 0 for a config without a time.
using Timer =
    std::function<std::vector<double>(const Problem& problem, std::span<const Config> configs)>;

struct FastModeOptions {
  std::uint32_t folds = 5;
  std::size_t hidden = 48;
  std::size_t problems = 16000;
  double max_regret = 0.1;
};

// Returns a timer that looks times up in the data set.
Timer recorded_timer(const Dataset& dataset);

// Adds fast_mode_us, fast_mode_mean_loss, fast_mode_p10_loss and the figures that explain them.
Status report_fast_mode(Figures& figures, const Dataset& dataset, const Timer& timer,
                        const FastModeOptions& options);

}  // namespace foretune::bench
