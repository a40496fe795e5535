// Predicted Pareto fronts as text and as JSON.
#include <algorithm>
#include <string>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/problem/problem.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string fronts_text(const FrontEvaluation& fronts, std::size_t worst) {
  using report_internal::percent_text;
  using report_internal::right;
  std::string out =
      concat("objective: ", fronts.objective, "\n", count_of(fronts.problems.size(), "problem"),
             ", ", count_of(fronts.predicted, "config"), " on the predicted fronts, ",
             fronts.missed, word_for(fronts.missed, " of them misses", " of them miss"),
             " a bound\n", "volume of the measured front that these keep: mean ",
             percent_text(fronts.mean_share), " %, P10 ", percent_text(fronts.p10_share),
             " %, min ", percent_text(fronts.min_share), " %\n");
  if (fronts.skipped_problems > 0) {
    out += concat(count_of(fronts.skipped_problems, "problem"),
                  word_for(fronts.skipped_problems, " has", " have"),
                  " no measured config that keeps the bounds\n");
  }
  std::vector<const FrontProblem*> order;
  for (const FrontProblem& problem : fronts.problems) {
    order.push_back(&problem);
  }
  std::stable_sort(order.begin(), order.end(), [](const FrontProblem* a, const FrontProblem* b) {
    return a->volume_share < b->volume_share;
  });
  order.resize(std::min(order.size(), worst));
  if (!order.empty()) {
    out += concat("\nworst problems\n", right("share", 9), right("front", 8),
                  right("predicted", 11), "  problem\n");
  }
  for (const FrontProblem* problem : order) {
    out += concat(right(concat(percent_text(problem->volume_share), " %"), 9),
                  right(concat(problem->front), 8), right(concat(problem->predicted), 11), "  ",
                  report_internal::clean_text(shown_problem(problem->problem)), "\n");
  }
  return out;
}

std::string fronts_json(const FrontEvaluation& fronts, const std::string& name,
                        const std::string& command, const Fingerprint& machine) {
  Json out = {{"name", name},
              {"metrics",
               {{"mean_volume_share", fronts.mean_share},
                {"p10_volume_share", fronts.p10_share},
                {"min_volume_share", fronts.min_share},
                {"problems", fronts.problems.size()},
                {"skipped_problems", fronts.skipped_problems},
                {"predicted_configs", fronts.predicted},
                {"missed_bounds", fronts.missed}}},
              {"machine", report_internal::machine_json(machine)},
              {"command", command},
              {"objective", fronts.objective},
              {"problems", Json::array()}};
  for (const FrontProblem& problem : fronts.problems) {
    out["problems"].push_back({{"problem", problem.problem},
                               {"efficiency", problem.volume_share},
                               {"pick", concat(problem.predicted, " configs")},
                               {"best_ns", 1},
                               {"measured", problem.measured},
                               {"front", problem.front},
                               {"predicted", problem.predicted},
                               {"missed", problem.missed}});
  }
  return report_internal::text_of(out);
}

}  // namespace foretune
