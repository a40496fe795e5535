// Searches of one computation against each other: every one with a budget and a stopwatch of its
// own, so that none profits from what another measured, and what they found timed again in turns.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foretune/autoschedule/schedule_search.h"
#include "foretune/autoschedule/search_results.h"
#include "foretune/base/result.h"
#include "foretune/environment/workbench.h"

namespace foretune::autoschedule {

// How what searches found is timed once more. Of many times measured once the shortest is the
// luckiest, so the fastest few of each search run again, all in turns: a change of the machine's
// clock then meets all of them.
struct FinalOptions {
  std::size_t finalists = 8;  // of each search
  int rounds = 7;
  double window_s = 1e-3;
  std::function<double()> now_seconds;  // monotonic; empty: std::chrono::steady_clock
};

// Sets the best of each trace to the fastest of its finalists, and gives their GFLOP/s (0 where a
// search found nothing that runs). Errors: kInternal for a schedule whose results are wrong.
Result<std::vector<double>> time_finalists(environment::Workbench& workbench,
                                           const ScheduleSpace& space,
                                           std::span<SearchTrace* const> traces,
                                           const FinalOptions& options = {});

struct ComparisonOptions {
  SearchBudget budget;  // of each search
  std::uint64_t seed = 1;
  SearchSetup setup;
  FinalOptions final;
  environment::StopwatchOptions stopwatch;
  // Before each search.
  std::function<void(const SearchMethod& method)> on_search;
};

// `space` is of the workbench's computation. Errors: those of the searches; kInternal for a
// schedule whose results are wrong, which nothing here compiles.
Result<BenchmarkResult> compare_searches(const std::string& benchmark,
                                         environment::Workbench& workbench,
                                         const ScheduleSpace& space,
                                         std::span<const SearchMethod> methods,
                                         const ComparisonOptions& options);

}  // namespace foretune::autoschedule
