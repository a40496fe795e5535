// The code shared by the plots and graphs of contests: summaries of strategies in one order,
// numbers as text. Internal to report. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/internal/figure.h"

namespace foretune::report_internal {

// A strategy on all problems, in their order.
struct MethodSummary {
  std::size_t index = 0;  // among the entries of every problem
  std::string name;
  std::vector<double> speeds;       // 0 where no config found runs
  std::vector<double> speedups;     // over the start; 0 where either is unknown
  double mean_speed = 0;            // geometric, of those that are known; 0 for none
  double mean_speedup = 0;          // likewise
  double mean_search_s = 0;         // likewise
  double mean_seconds_to_best = 0;  // likewise
};
// Returns the strategies, the fastest first, equally fast ones in the given order. Empty where
// there is nothing to draw: no problem, no strategy, or no speed.
std::vector<MethodSummary> by_speed(const ContestResults& results);

// Returns the mean of the values above 0; 0 when there are none.
double mean_of_known(std::span<const double> values);
// Returns the seconds until the fastest config was measured; 0 where no measured config runs.
double seconds_to_best(const ContestTrace& trace);

// Width of the plots of contests where names and columns fit; a narrow screen shows it whole.
inline constexpr double kContestWidth = 640;

// "0.61", "67.1", "123"
std::string short_number(double value);
// "2.97×"
std::string times_text(double value);
// "38 ms", "1.2 s", "5 min"
std::string duration_text(double seconds);
// Returns the text, truncated with an ellipsis where it is wider than `width`.
std::string shortened(std::string_view text, double size, double width);

// Returns the 95 % interval of the geometric mean of the values above 0 over the problems; nothing
// for fewer than four.
std::optional<BootstrapInterval> interval_of_mean(std::span<const double> values);

}  // namespace foretune::report_internal
