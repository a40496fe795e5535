#include "foretune/report/search_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/problem/problem_type.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using report_internal::clean_text;
using report_internal::number;
using report_internal::number_text;
using report_internal::percent_text;
using report_internal::right;
using report_internal::time_text;
using Json = nlohmann::ordered_json;

// NaN where there is no valid time.
double measured_ns(const SearchReport& report, std::size_t index) {
  if (index >= report.measured.size() || report.measured[index].outcome != Outcome::kOk) {
    return kNotANumber;
  }
  const MetricValue* const time = report.measured[index].find(kTimeNs);
  return time == nullptr ? kNotANumber : time->value;
}

double fastest_ns(const SearchReport& report) {
  double best = kNotANumber;
  for (std::size_t i = 0; i < report.measured.size(); ++i) {
    const double time_ns = measured_ns(report, i);
    best = std::isnan(best) || time_ns < best ? time_ns : best;
  }
  return best;
}

bool has_times(const SearchReport& report) { return report.is_absolute || report.time_ns; }

double predicted_ns(const SearchReport& report, double score) {
  return report.is_absolute ? std::exp(score)
         : report.time_ns   ? report.time_ns(score)
                            : kNotANumber;
}

std::string summary(const SearchReport& report) {
  const SurrogateResult& found = report.found;
  std::string out = concat("scored ", count_text(found.scored));
  if (found.legal_configs) {
    out += concat(" of ", count_of(*found.legal_configs, "legal config"));
  } else {
    out += " configs of a space too large to be listed";
  }
  out += concat(" (", report.strategy, ")\n");
  if (found.best_score) {
    out += found.better == 0
               ? std::string("none of all legal configs scores better than the first\n")
               : concat("the first is predicted to reach ", percent_text(found.efficiency),
                        " % of the best of all; ", count_text(found.better),
                        word_for(found.better, " scores", " score"), " better\n");
  }
  return out;
}

std::string text_of(const SearchReport& report, const Config& config) {
  return clean_text(report.describe ? report.describe(config) : shown_text(report.schema, config));
}

// How a config fared when it was measured.
std::string measured_text(const SearchReport& report, std::size_t index, double fastest) {
  const double time_ns = measured_ns(report, index);
  if (std::isnan(time_ns)) {
    return right(index < report.measured.size()
                     ? std::string(to_string(report.measured[index].outcome))
                     : std::string(report_internal::kNoNumber),
                 20);
  }
  return concat(right(time_text(time_ns), 11),
                right(concat("+", percent_text(time_ns / fastest - 1), " %"), 9));
}

}  // namespace

std::string search_text(const SearchReport& report, bool color) {
  const auto paint = [&](std::string_view code, std::string_view text) {
    return color ? concat(code, text, "\033[0m") : std::string(text);
  };
  const bool measured = !report.measured.empty();
  std::string out = concat(paint("\033[1m", clean_text(report.problem.shown_text())), "\n");
  out += summary(report);
  const bool times = has_times(report);
  const auto work = problem_work(report.problem);
  if (!times) {
    out += paint("\033[2m", "The model predicts ratios within a problem, not times.");
    out += '\n';
  }
  out += '\n';
  out +=
      paint("\033[2m",
            concat("  rank", times ? concat(right("predicted", 11), right("TFLOPS", 9)) : "",
                   right("slower", 9),
                   measured ? concat(right("measured", 11), right("slower", 9)) : "", "  config"));
  out += '\n';
  const double fastest = fastest_ns(report);
  for (std::size_t i = 0; i < report.found.ranked.size(); ++i) {
    const ScoredConfig& entry = report.found.ranked[i];
    const double slower = std::expm1(entry.score - report.found.ranked[0].score);
    out += right(concat(i + 1), 6);
    if (times) {
      const double time_ns = predicted_ns(report, entry.score);
      out += concat(right(time_text(time_ns), 11),
                    right(number_text(work ? work->flops / time_ns * 1e-3 : kNotANumber, 2), 9));
    }
    out += right(concat("+", percent_text(slower), " %"), 9);
    out += measured ? measured_text(report, i, fastest) : "";
    out += concat("  ", text_of(report, entry.config), "\n");
  }
  for (std::size_t i = report.found.ranked.size(); i < report.measured.size(); ++i) {
    out += concat(right("-", 6), times ? right("", 20) : "", right("default", 9),
                  measured_text(report, i, fastest), "  ",
                  text_of(report, report.measured[i].config), "\n");
  }
  return out;
}

std::string search_json(const SearchReport& report, const std::string& command) {
  const SurrogateResult& found = report.found;
  const double fastest = fastest_ns(report);
  Json metrics = {{"scored", found.scored}};
  if (found.legal_configs) {
    metrics["legal_configs"] = *found.legal_configs;
  }
  if (found.best_score) {
    metrics["efficiency"] = found.efficiency;
    metrics["better"] = found.better;
  }
  if (std::isfinite(fastest)) {
    metrics["best_measured_ns"] = fastest;
  }
  Json out = {{"name", "search"},
              {"metrics", std::move(metrics)},
              {"machine", report_internal::machine_json(report.machine)},
              {"command", command},
              {"problem", report.problem.text()},
              {"strategy", report.strategy},
              {"absolute_times", report.is_absolute},
              {"ranking", Json::array()},
              {"default", nullptr}};
  const auto work = problem_work(report.problem);
  for (std::size_t i = 0; i < found.ranked.size(); ++i) {
    const ScoredConfig& entry = found.ranked[i];
    const double time_ns = predicted_ns(report, entry.score);
    out["ranking"].push_back({{"rank", i + 1},
                              {"config", to_text(report.schema, entry.config)},
                              {"score", number(entry.score)},
                              {"time_ns", number(time_ns)},
                              {"tflops", number(work ? work->flops / time_ns * 1e-3 : kNotANumber)},
                              {"measured_ns", number(measured_ns(report, i))}});
    if (report.describe) {
      out["ranking"].back()["description"] = report.describe(entry.config);
    }
  }
  if (report.measured.size() > found.ranked.size()) {
    const std::size_t last = report.measured.size() - 1;
    out["default"] = {{"config", to_text(report.schema, report.measured[last].config)},
                      {"measured_ns", number(measured_ns(report, last))}};
  }
  return report_internal::text_of(out);
}

}  // namespace foretune
