// Plots of a tuned problem, drawn with the classes of style.cc. Internal to the module. Thread
// safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/report/internal/figure.h"
#include "foretune/report/internal/tune_analysis.h"
#include "foretune/space/config.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::report_internal {

// A plot for every pair of targets and for each bounded metric against the first target; of a
// metric alone, its values in order.
std::vector<Figure> tune_plots(const TuneResult& result, const TuneAnalysis& analysis,
                               const ConfigSchema& schema);

}  // namespace foretune::report_internal
