// Shared by the plots and graphs of contests: the style sheet, strategies summed up and in one
// order, numbers as text. Internal to report. Thread safety: free functions
// without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/documents/svg.h"
#include "foretune/report/contest_report.h"

namespace foretune::plot_internal {

std::string_view plot_style();

// A strategy on all problems, in their order.
struct MethodSummary {
  std::size_t index = 0;  // among the entries of every problem
  std::string name;
  std::vector<double> speeds;       // 0 where nothing that was found runs
  std::vector<double> speedups;     // over the start; 0 where one of them is not known
  double mean_speed = 0;            // geometric, of those that are known; 0 for none
  double mean_speedup = 0;          // likewise
  double mean_search_s = 0;         // likewise
  double mean_seconds_to_best = 0;  // likewise
};
// The fastest first, and those as fast in the order they are given. Empty where there is nothing to
// draw: no problem, no strategy, or not one speed.
std::vector<MethodSummary> by_speed(const ContestResults& results);

// Of those above 0; 0 when there are none.
double mean_of_known(std::span<const double> values);
// Seconds until the fastest was measured; 0 where nothing that was measured runs.
double seconds_to_best(const ContestTrace& trace);

// "0.61", "67.1", "123"
std::string short_number(double value);
// "2.97×"
std::string times_text(double value);
// "38 ms", "1.2 s", "5 min"
std::string duration_text(double seconds);
// The beginning of a text that is wider than that, with an ellipsis.
std::string shortened(std::string_view text, double size, double width);

// The class of a strategy's lines: one of seven colours and three kinds of strokes.
std::string series_class(std::size_t rank);

// Heading, and one softer line below it.
void draw_heading(documents::Svg& svg, double x, double y, std::string_view heading,
                  std::string_view explanation);

}  // namespace foretune::plot_internal
