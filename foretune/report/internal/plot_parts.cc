#include "foretune/report/internal/plot_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune::report_internal {
namespace {

constexpr std::size_t kColours = 7;
constexpr std::size_t kStrokes = 3;

MethodSummary summary_of(const ContestResults& results, std::size_t index) {
  MethodSummary out{.index = index, .name = results.problems.front().entries[index].name};
  std::vector<double> search_s;
  std::vector<double> best_s;
  for (const ContestResult& problem : results.problems) {
    const ContestEntry& method = problem.entries[index];
    const bool is_known = method.speed > 0 && problem.start_speed > 0;
    out.speeds.push_back(method.speed);
    out.speedups.push_back(is_known ? method.speed / problem.start_speed : 0);
    search_s.push_back(method.trace.elapsed_s);
    best_s.push_back(seconds_to_best(method.trace));
  }
  out.mean_speed = mean_of_known(out.speeds);
  out.mean_speedup = mean_of_known(out.speedups);
  out.mean_search_s = mean_of_known(search_s);
  out.mean_seconds_to_best = mean_of_known(best_s);
  return out;
}

}  // namespace

std::vector<MethodSummary> by_speed(const ContestResults& results) {
  std::vector<MethodSummary> out;
  if (results.problems.empty()) {
    return out;
  }
  for (std::size_t i = 0; i < results.problems.front().entries.size(); ++i) {
    out.push_back(summary_of(results, i));
  }
  std::stable_sort(out.begin(), out.end(), [](const MethodSummary& a, const MethodSummary& b) {
    return a.mean_speed > b.mean_speed;
  });
  if (!out.empty() && !(out.front().mean_speed > 0)) {
    out.clear();
  }
  return out;
}

double mean_of_known(std::span<const double> values) {
  std::vector<double> known;
  std::copy_if(values.begin(), values.end(), std::back_inserter(known),
               [](double value) { return value > 0 && std::isfinite(value); });
  return known.empty() ? 0 : geometric_mean(known);
}

double seconds_to_best(const ContestTrace& trace) {
  return trace.best < trace.steps.size() && trace.steps[trace.best].speed > 0
             ? trace.steps[trace.best].elapsed_s
             : 0;
}

std::string short_number(double value) {
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string times_text(double value) { return concat(short_number(value), "\u00d7"); }

std::string duration_text(double seconds) {
  struct Unit {
    double seconds;
    std::string_view name;
  };
  static constexpr std::array kUnits{Unit{3600, " h"}, Unit{60, " min"}, Unit{1, " s"},
                                     Unit{1e-3, " ms"}};
  for (const Unit& unit : kUnits) {
    // Two minutes are better told in seconds.
    const double least = unit.seconds > 1 ? 3 * unit.seconds : 0.9995 * unit.seconds;
    if (seconds >= least) {
      const double amount = seconds / unit.seconds;
      std::string number = fixed(amount, amount < 9.95 && unit.seconds <= 1 ? 1 : 0);
      if (number.ends_with(".0")) {
        number.resize(number.size() - 2);
      }
      return concat(number, unit.name);
    }
  }
  return concat(fixed(seconds * 1e6, 0), " us");
}

std::string shortened(std::string_view text, double size, double width) {
  using formats::text_width;
  if (text_width(text, size) <= width) {
    return std::string(text);
  }
  while (!text.empty() && text_width(text, size) + size > width) {
    // A letter with all of its bytes.
    do {
      text.remove_suffix(1);
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0);
  }
  return concat(text, "\u2026");
}

std::string series_class(std::size_t rank) {
  return concat("c", rank % kColours, " s", rank / kColours % kStrokes);
}

void draw_heading(Svg& svg, double x, double y, std::string_view heading,
                  std::string_view explanation) {
  svg.text(x, y, Anchor::kStart, "heading", heading);
  svg.text(x, y + 19, Anchor::kStart, "note", explanation);
}

std::string contest_style() {
  return concat(palette(), R"css(
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.page { fill: var(--surface); }
.heading { fill: var(--ink); font-size: 16px; font-weight: 650; }
.note { font-size: 12.5px; }
.name, .label { fill: var(--ink); font-size: 12.5px; }
.value { fill: var(--ink); }
.strong { fill: var(--ink); font-weight: 650; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--axis); }
.peak { stroke: var(--peak); stroke-width: 1.5; stroke-dasharray: 5 3; }
.peak-text { fill: var(--peak); font-size: 11.5px; }
.bar { fill: var(--bar); }
.bar.best { fill: var(--best); fill-opacity: 0.85; }
.point { fill: var(--soft); fill-opacity: 0.5; stroke: var(--surface); stroke-width: 0.7; }
.point.best { fill: var(--ink); }
.span { stroke: var(--soft); stroke-width: 1.5; stroke-linecap: round; }
.end { fill: var(--bar); stroke: var(--soft); stroke-width: 1.2; }
.end.best { fill: var(--best); stroke: var(--best); }
.ring { fill: var(--surface); stroke: var(--soft); stroke-width: 1.5; }
.ring.best { stroke: var(--best); }
.point:hover, .end:hover, .ring:hover, .cell:hover { stroke: var(--ink); stroke-width: 1.5; }
.cell-text { pointer-events: none; fill: var(--ink); font-size: 11.5px; }
.cell.h0 { fill: var(--h0); } .cell.h1 { fill: var(--h1); } .cell.h2 { fill: var(--h2); }
.cell.h3 { fill: var(--h3); } .cell.h4 { fill: var(--h4); }
.cell-text.h3 { fill: var(--on-h3); } .cell-text.h4 { fill: var(--on-h4); font-weight: 650; }
.violin { fill: var(--bar); fill-opacity: 0.75; stroke: var(--soft); stroke-width: 1; }
.violin.best { fill: var(--best); fill-opacity: 0.55; stroke: var(--best); }
.box { fill: var(--ink); fill-opacity: 0.8; }
.median { fill: var(--surface); stroke: var(--ink); stroke-width: 2; }
.even { stroke: var(--axis); stroke-width: 1.5; }
.mean { fill: none; stroke-width: 2.6; stroke-linejoin: round; stroke-linecap: round; }
.one { fill: none; stroke-width: 1; stroke-opacity: 0.16; stroke-linejoin: round; }
.methods:hover .method { opacity: 0.12; }
.methods .method:hover { opacity: 1; }
.many .one { stroke-opacity: 0.09; }
.methods .method:hover .one { stroke-opacity: 0.6; }
)css"
                           R"css(
.mean.c0, .one.c0 { stroke: var(--c0); } .last.c0 { fill: var(--c0); }
.mean.c1, .one.c1 { stroke: var(--c1); } .last.c1 { fill: var(--c1); }
.mean.c2, .one.c2 { stroke: var(--c2); } .last.c2 { fill: var(--c2); }
.mean.c3, .one.c3 { stroke: var(--c3); } .last.c3 { fill: var(--c3); }
.mean.c4, .one.c4 { stroke: var(--c4); } .last.c4 { fill: var(--c4); }
.mean.c5, .one.c5 { stroke: var(--c5); } .last.c5 { fill: var(--c5); }
.mean.c6, .one.c6 { stroke: var(--c6); } .last.c6 { fill: var(--c6); }
.mean.s1 { stroke-dasharray: 7 4; } .mean.s2 { stroke-dasharray: 1.5 5; }
)css");
}

}  // namespace foretune::report_internal
