#include "foretune/autoschedule/search_results.h"

#include <algorithm>
#include <cmath>

#include "foretune/autoschedule/plot_parts.h"
#include "foretune/base/text.h"
#include "foretune/documents/csv.h"

namespace foretune::autoschedule {
namespace {

using documents::csv_quoted;

// A cell without a number where there is none to tell.
std::string number_or_empty(double value, bool is_known) {
  return is_known && std::isfinite(value) ? concat(value) : std::string();
}

std::string result_row(const SearchResults& results, const BenchmarkResult& benchmark,
                       const MethodResult& method) {
  const SearchTrace& trace = method.trace;
  const SearchStep best = trace.best < trace.steps.size() ? trace.steps[trace.best] : SearchStep();
  const bool has_best = best.gflops > 0;
  return concat(csv_quoted(benchmark.benchmark), ",", csv_quoted(benchmark.computation), ",",
                csv_quoted(method.method), ",", method.gflops, ",",
                number_or_empty(method.gflops / results.peak_gflops, results.peak_gflops > 0), ",",
                number_or_empty(method.gflops / benchmark.base_gflops, benchmark.base_gflops > 0),
                ",", best.gflops, ",", trace.steps.size(), ",",
                has_best ? concat(trace.best + 1) : std::string(), ",", trace.elapsed_s, ",",
                number_or_empty(best.elapsed_s, has_best), ",", trace.is_finished, ",",
                csv_quoted(method.schedule), "\n");
}

}  // namespace

std::string results_csv(const SearchResults& results) {
  std::string out =
      "benchmark,computation,method,gflops,share_of_peak,speedup_over_base,found_gflops,"
      "measurements,measurements_to_best,search_s,seconds_to_best,finished,schedule\n";
  for (const BenchmarkResult& benchmark : results.benchmarks) {
    for (const MethodResult& method : benchmark.methods) {
      out += result_row(results, benchmark, method);
    }
  }
  return out;
}

std::string measurements_csv(const SearchResults& /*results*/, const BenchmarkResult& benchmark,
                             const ScheduleSpace& space) {
  std::string out = "method,measurement,elapsed_s,gflops,best_gflops,run_ns,schedule\n";
  for (const MethodResult& method : benchmark.methods) {
    double best_gflops = 0;
    std::size_t number = 0;
    for (const SearchStep& step : method.trace.steps) {
      best_gflops = std::max(best_gflops, step.gflops);
      out += concat(csv_quoted(method.method), ",", ++number, ",", step.elapsed_s, ",", step.gflops,
                    ",", best_gflops, ",", number_or_empty(1e9 * step.seconds, true), ",",
                    csv_quoted(space.text(step.config)), "\n");
    }
  }
  return out;
}

}  // namespace foretune::autoschedule
