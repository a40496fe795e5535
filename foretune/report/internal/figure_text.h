// How the reports write numbers, so that the same one reads the same in all of them. Internal to
// the module. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/evaluate/evaluate.h"

namespace foretune::report_internal {

// Stands in for a missing number.
inline constexpr std::string_view kNoNumber = "-";
// Measured picks per problem that reports show of PickerResult::measured_curve.
inline constexpr std::size_t kCurveSteps[] = {1, 2,  3,
                                              5, 10, 16};  // NOLINT(modernize-avoid-c-arrays)

std::string number_text(double value, int decimals);  // "0.081"
std::string percent_text(double share);               // "96.8", of 0.968
std::string interval_text(const Interval& interval);  // "95.4 to 97.9"
std::string gain_text(double share);                  // "+11.5", in points
std::string time_text(double nanoseconds);            // "812 ns", "3.52 us"; "-" below 0
std::string loss_text(double loss);                   // "0.0123", "-" without one
// The text at that side of `width` bytes, the others blank; as it is where it is longer.
std::string right(std::string text, std::size_t width);
// Returns after how many runs something pays: "1 run", "1,200 runs", "never" for infinity.
std::string runs_text(double runs);
std::string left(std::string text, std::size_t width);
// Without control characters: those from foreign files must not reach a terminal.
std::string clean_text(std::string_view text);

// The numbers at the head of every report, all of them shares.
struct Headline {
  std::string_view name;         // "mean"
  std::string_view explanation;  // one sentence
  Interval interval;
};
std::vector<Headline> headlines(const Evaluation& evaluation);

// One or two sentences: what the numbers mean, beside the best single config.
std::string summary_text(const Evaluation& evaluation);

}  // namespace foretune::report_internal
