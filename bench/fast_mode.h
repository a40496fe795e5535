// What the fast mode costs and loses, measured over folds by group: on each the exact model is
// trained and the fast one distilled from it, and both pick for the problems held out.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/dataset/dataset.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune::bench {

// Times in ns of the configs on the problem, in order; 0 for one that has none.
using Timer =
    std::function<std::vector<double>(const Problem& problem, std::span<const Config> configs)>;

struct FastModeOptions {
  std::uint32_t folds = 5;
  std::size_t hidden = 48;
  std::size_t problems = 16000;
  double max_regret = 0.1;
};

// A timer that looks up what the data set has measured.
Timer recorded_timer(const Dataset& dataset);

// Adds fast_mode_us, fast_mode_mean_loss, fast_mode_p10_loss and what explains them.
Status report_fast_mode(Figures& figures, const Dataset& dataset, const Timer& timer,
                        const FastModeOptions& options);

}  // namespace foretune::bench
