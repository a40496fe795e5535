// Tuned problems as text, as JSON and as a page: the finalists, and by the objective the bounds,
// the front with its knee, and every measured config in a plot.
//
//   FORETUNE_TRY(TuneResult result, tune_problem(...));
//   print(tune_text(problem, result, family.info().config_schema));
//
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/problem/problem.h"
#include "foretune/report/figure_file.h"
#include "foretune/space/config.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {

struct TunedProblem {
  Problem problem;
  TuneResult result;  // has a judge, and at least one finalist
};

struct TuneReport {
  std::vector<TunedProblem> problems;                        // all tuned for one objective
  std::vector<std::pair<std::string, std::string>> refused;  // problem and reason
  ConfigSchema schema;
  // Named facts for the foot of the page: family, device, command.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string source = {};  // one line below figures: program, device, date
};

// In lines of at most some 100 columns, names of metrics and configs permitting. For the time alone
// a list of the finalists and the default config; otherwise also the bounds, how many configs met
// them, a column for each metric that the objective names, its gain over the default config, and of
// several targets the front, its knee and its hypervolume.
std::string tune_text(const Problem& problem, const TuneResult& result, const ConfigSchema& schema);

// figures.json() and behind it "results": for each problem its objective, metrics, limits and
// baseline, the finalists, every measured config, the front, the knee and the hypervolume. Values
// are in the units that "metrics" says; positions count from 0.
std::string tune_json(const Figures& figures, std::span<const TunedProblem> problems,
                      const ConfigSchema& schema);

// One page without any file beside it; a section for each problem.
std::string tune_html(const TuneReport& report, const std::string& title);
// The plots of the page; names begin with the number of the problem.
std::vector<FigureFile> tune_figures(const TuneReport& report);

// "3.52 us", "1.5 KiB", "97.25 %": times and bytes in a unit that fits, other values with four
// significant digits, "-" for a value that is not finite.
std::string metric_text(double value, std::string_view unit);

}  // namespace foretune
