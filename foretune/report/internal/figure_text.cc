#include "foretune/report/internal/figure_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "foretune/base/significant.h"
#include "foretune/base/text.h"

namespace foretune::report_internal {

std::string number_text(double value, int decimals) {
  return std::isfinite(value) ? fixed(value, decimals) : std::string(kNoNumber);
}

std::string percent_text(double share) { return number_text(100 * share, 1); }

std::string interval_text(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) {
    return std::string(kNoNumber);
  }
  return concat(percent_text(interval.low), " to ", percent_text(interval.high));
}

std::string gain_text(double share) {
  const std::string text = percent_text(share);
  return std::isfinite(share) && !text.starts_with("-") ? concat("+", text) : text;
}

std::string time_text(double nanoseconds) {
  if (!(nanoseconds >= 0) || !std::isfinite(nanoseconds)) {
    return std::string(kNoNumber);
  }
  struct Unit {
    double nanoseconds;
    std::string_view name;
  };
  static constexpr std::array kUnits{Unit{1e9, " s"}, Unit{1e6, " ms"}, Unit{1e3, " us"}};
  for (const Unit& unit : kUnits) {
    if (nanoseconds >= unit.nanoseconds) {
      const double value = nanoseconds / unit.nanoseconds;
      return concat(fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0), unit.name);
    }
  }
  return concat(fixed(nanoseconds, nanoseconds < 10 ? 1 : 0), " ns");
}

std::string loss_text(double loss) {
  constexpr int kDigits = 4;
  return std::isfinite(loss) ? significant(loss, kDigits) : std::string(kNoNumber);
}

std::string right(std::string text, std::size_t width) {
  text.insert(0, width - std::min(width, text.size()), ' ');
  return text;
}

std::string left(std::string text, std::size_t width) {
  text.append(width - std::min(width, text.size()), ' ');
  return text;
}

std::string clean_text(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

std::vector<Headline> headlines(const Evaluation& evaluation) {
  const PickerResult& model = evaluation.model;
  return {
      {"mean", "of the efficiencies over all problems", model.mean_efficiency},
      {"median", "half of the problems do better", model.median_efficiency},
      {"P10", "one problem in ten does worse", model.p10_efficiency},
      {"minimum", "the worst problem", model.min_efficiency},
      {"geometric mean", "the factor by which the picks are slower on the whole",
       model.geomean_efficiency},
      {"top 5 measured", "mean when the first five are measured, the fastest kept",
       model.top5_measured_efficiency},
  };
}

std::string summary_text(const Evaluation& evaluation) {
  const PickerResult& model = evaluation.model;
  std::string out =
      concat("The picks reach ", percent_text(model.mean_efficiency.value),
             " % of the speed of the best known config on average over ",
             count_of(model.problems, "problem"), "; measuring the first five and keeping the ",
             "fastest reaches ", percent_text(model.top5_measured_efficiency.value), " %.");
  if (model.top5_judges_itself > 0) {
    out += concat(" On ", count_of(model.top5_judges_itself, "problem"),
                  " the time that chose among these also judges the choice, which flatters.");
  }
  if (const PickerResult* single = find_baseline(evaluation, "best_single_config")) {
    out += concat(" The best single config reaches ", percent_text(single->mean_efficiency.value),
                  " %: the model gains ", gain_text(single->model_gain.value), " points");
    if (std::isfinite(single->model_speedup)) {
      out += concat(", its picks are ", number_text(single->model_speedup, 2),
                    " times as fast (geometric mean)");
    }
    out += ".";
  }
  return out;
}

std::string runs_text(double runs) {
  if (!std::isfinite(runs)) {
    return "never";
  }
  return count_of(static_cast<std::uint64_t>(runs), "run");
}

}  // namespace foretune::report_internal
