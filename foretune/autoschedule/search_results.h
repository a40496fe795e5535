// What a comparison of searches on some benchmarks found, and its files: tables, plots, graphs.
//
// Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "foretune/autoschedule/schedule_search.h"
#include "foretune/base/result.h"

namespace foretune::autoschedule {

// One search of one benchmark.
struct MethodResult {
  std::string method;
  SearchTrace trace;
  std::string schedule;  // of the fastest, as text
  // Timed again after all searches, in turns with those of the others: what is compared.
  double gflops = 0;
  // After each action of `schedule`, the plain nest first; 0 where a nest on the way is refused.
  std::vector<double> gflops_after;
};

struct BenchmarkResult {
  std::string benchmark;    // name
  std::string computation;  // text
  double base_gflops = 0;   // of the schedule that it starts from
  std::vector<MethodResult> methods;
};

struct SearchResults {
  double peak_gflops = 0;
  std::vector<BenchmarkResult> benchmarks;  // all with the same methods in the same order
};

// CSV: a row per benchmark and method.
std::string results_csv(const SearchResults& results);
// CSV: a row per measurement of a benchmark.
std::string measurements_csv(const SearchResults& results, const BenchmarkResult& benchmark,
                             const ScheduleSpace& space);

// SVG images with their own style, for a browser or a document. Empty where nothing can be drawn.
// GFLOP/s of every benchmark by method, and the seconds that searching took, on a scale of
// logarithms.
std::string bars_svg(const SearchResults& results);
// The distribution of the speed over the start's, by method, with medians and quartiles.
std::string violin_svg(const SearchResults& results);
// Left: the share of the peak after each action of the schedules found; right: the best so far by
// measurements. Geometric means over the benchmarks, and every benchmark behind them.
std::string gain_svg(const SearchResults& results);

}  // namespace foretune::autoschedule
