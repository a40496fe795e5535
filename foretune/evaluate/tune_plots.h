// Plots of a tuned problem as inline SVG, by the classes of report_style.cc. Internal to evaluate.
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <vector>

#include "foretune/evaluate/tune_analysis.h"
#include "foretune/space/config.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::evaluate_internal {

// Of several targets every pair; of one target each bounded metric against it; of a metric alone
// its values in order.
std::vector<std::string> tune_plots(const TuneResult& result, const TuneAnalysis& analysis,
                                    const ConfigSchema& schema);
// What their marks mean.
std::string tune_legend(const TuneResult& result, const TuneAnalysis& analysis);

}  // namespace foretune::evaluate_internal
