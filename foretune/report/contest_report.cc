#include "foretune/report/contest_report.h"

#include <algorithm>
#include <cmath>

#include "foretune/base/text.h"
#include "foretune/formats/csv.h"

namespace foretune {
namespace {

using formats::csv_quoted;

// A cell without a number where there is none to tell.
std::string number_or_empty(double value, bool is_known) {
  return is_known && std::isfinite(value) ? concat(value) : std::string();
}

std::string result_row(const ContestResults& results, const ContestResult& problem,
                       const ContestEntry& entry) {
  const ContestTrace& trace = entry.trace;
  const ContestStep best =
      trace.best < trace.steps.size() ? trace.steps[trace.best] : ContestStep();
  const bool has_best = best.speed > 0;
  return concat(csv_quoted(problem.name), ",", csv_quoted(problem.problem), ",",
                csv_quoted(entry.name), ",", entry.speed, ",", csv_quoted(results.unit), ",",
                number_or_empty(entry.speed / results.peak, results.peak > 0), ",",
                number_or_empty(entry.speed / problem.start_speed, problem.start_speed > 0), ",",
                best.speed, ",", trace.steps.size(), ",",
                has_best ? concat(trace.best + 1) : std::string(), ",", trace.elapsed_s, ",",
                number_or_empty(best.elapsed_s, has_best), ",", trace.is_finished, ",",
                csv_quoted(entry.config_text), "\n");
}

}  // namespace

std::string contest_csv(const ContestResults& results) {
  std::string out =
      "name,problem,strategy,speed,unit,share_of_peak,speedup_over_start,found_speed,"
      "measurements,measurements_to_best,search_s,seconds_to_best,finished,config\n";
  for (const ContestResult& problem : results.problems) {
    for (const ContestEntry& entry : problem.entries) {
      out += result_row(results, problem, entry);
    }
  }
  return out;
}

std::string contest_steps_csv(const ContestResult& result, const Space& space) {
  std::string out = "strategy,measurement,elapsed_s,speed,best_speed,time_ns,config\n";
  for (const ContestEntry& entry : result.entries) {
    double best_speed = 0;
    std::size_t number = 0;
    for (const ContestStep& step : entry.trace.steps) {
      best_speed = std::max(best_speed, step.speed);
      out += concat(csv_quoted(entry.name), ",", ++number, ",", step.elapsed_s, ",", step.speed,
                    ",", best_speed, ",", number_or_empty(step.time_ns, true), ",",
                    csv_quoted(space.describe(step.config)), "\n");
    }
  }
  return out;
}

}  // namespace foretune
