// Plots of a tuned problem as inline SVG, by the classes of report_style.cc. Internal to the
// module. Thread safety: free functions without state.
#pragma once

#include <string>
#include <vector>

#include "foretune/report/internal/tune_analysis.h"
#include "foretune/space/config.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::report_internal {

// A plot for every pair of targets and for each bounded metric against the first target; of a
// metric alone, its values in order.
std::vector<std::string> tune_plots(const TuneResult& result, const TuneAnalysis& analysis,
                                    const ConfigSchema& schema);
// The meaning of their marks.
std::string tune_legend(const TuneResult& result, const TuneAnalysis& analysis);

}  // namespace foretune::report_internal
