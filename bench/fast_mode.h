// Measures the time and the loss of the fast mode: of one model on problems that it did not learn
// from, or over folds by group, each with an exact model and the fast one distilled from it.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/dataset/dataset.h"
#include "foretune/family/family.h"
#include "foretune/model/model_file.h"
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
// Returns a timer that runs the configs on this machine, in turn, in so many rounds. Errors: those
// of create_family().
Result<Timer> live_timer(std::string_view family, const FamilyOptions& options, int rounds);

// Adds the figures of the distilled model of `model`, except what it takes to distil. Problems that
// the timer has no times for are left out and counted.
Status report_distilled(Figures& figures, const Model& model, const Dataset& held_out,
                        const Timer& timer, double max_regret);

// Adds fast_mode_us, fast_mode_mean_loss, fast_mode_p10_loss and the figures that explain them.
Status report_fast_mode(Figures& figures, const Dataset& dataset, const Timer& timer,
                        const FastModeOptions& options);

}  // namespace foretune::bench
