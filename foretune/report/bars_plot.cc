#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

constexpr double kMargin = 16;
constexpr double kNameSize = 12.5;
constexpr double kMaxName = 190;
constexpr std::size_t kFewestProblems = 4;  // for an interval
constexpr double kRow = 27;                 // of a method
constexpr double kCell = 22;                // of a problem
constexpr double kTitled = 44;              // height of a heading
constexpr double kAbove = 26;               // names of columns
constexpr double kBelow = 64;               // ticks and names of axes
constexpr double kNumber = 66;              // a column of numbers

// Shares of the fastest, and the texts of the legend.
struct Shade {
  double least;
  std::string_view style;
  std::string_view text;
};
constexpr std::array kShades{Shade{0.98, "h4", "98 % and more"}, Shade{0.9, "h3", "90 to 98 %"},
                             Shade{0.75, "h2", "75 to 90 %"}, Shade{0.5, "h1", "50 to 75 %"},
                             Shade{0, "h0", "below 50 %"}};

std::string_view shade_class(double share) {
  for (const Shade& level : kShades) {
    if (share >= level.least) {
      return level.style;
    }
  }
  return kShades.back().style;
}

class BarsPlot {
 public:
  BarsPlot(const ContestResults& results, std::vector<MethodSummary> methods)
      : results_(results), methods_(std::move(methods)) {
    for (const MethodSummary& method : methods_) {
      names_ = std::max(names_, formats::text_width(method.name, kNameSize));
      cell_ = std::max(cell_, formats::text_width(method.name, 12) + 8);
    }
    if (has_table()) {
      for (const ContestResult& problem : results_.problems) {
        names_ = std::max(names_, formats::text_width(problem.name, kNameSize));
      }
    }
    names_ = std::min(names_, kMaxName);
    left_ = kMargin + names_ + 12;
    width_ = kContestWidth;
    if (has_table()) {
      width_ = std::max(width_, left_ + cell_ * static_cast<double>(methods_.size()) + kMargin);
      // The table is as wide as the panels above it.
      cell_ = (width_ - kMargin - left_) / static_cast<double>(methods_.size());
      cell_ = std::min(cell_, 110.0);
    }
  }

  Figure draw() {
    Svg svg = Svg::elements();
    const double rows = kRow * static_cast<double>(methods_.size());
    const double right = width_ - kMargin - 2 * kNumber;
    const Panel speed{left_, kAbove, right, kAbove + rows};
    const Panel time{left_, speed.bottom + kBelow + kAbove, right,
                     speed.bottom + kBelow + kAbove + rows};
    draw_speed(svg, speed);
    draw_time(svg, time);
    double bottom = time.bottom + 46;
    if (has_table()) {
      bottom = draw_table(svg, bottom + 20);
    }
    return {.name = "bars",
            .title = heading(),
            .note = explanation(),
            .width = width_,
            .height = bottom,
            .drawing = svg.finish(),
            .legend = legend()};
  }

 private:
  [[nodiscard]] std::size_t count() const { return results_.problems.size(); }
  [[nodiscard]] bool has_table() const { return count() > 1; }
  static double row(const Panel& panel, std::size_t rank) {
    return panel.top + kRow * (static_cast<double>(rank) + 0.5);
  }
  static std::string_view best(std::size_t rank) { return rank == 0 ? " best" : ""; }

  [[nodiscard]] std::string heading() const {
    if (methods_.size() < 2 || !(methods_[1].mean_speed > 0)) {
      return concat(methods_[0].name, ": ", short_number(methods_[0].mean_speed), " ",
                    results_.unit);
    }
    const double ratio = methods_[0].mean_speed / methods_[1].mean_speed;
    if (ratio < 1.0005) {
      return concat(methods_[0].name, " and ", methods_[1].name, " find the fastest configs");
    }
    const double percent = 100 * (ratio - 1);
    return concat(methods_[0].name, " finds the fastest configs, ",
                  ratio < 2 ? concat(fixed(percent, percent < 9.95 ? 1 : 0), " % ahead of ")
                            : concat(times_text(ratio), " as fast as "),
                  methods_[1].name);
  }
  [[nodiscard]] std::string explanation() const {
    return count() == 1 ? concat(results_.problems[0].name, ", fastest first")
                        : concat("Geometric means over ", count(), " problems, fastest first");
  }

  void draw_names(Svg& svg, const Panel& panel) const {
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      svg.text(left_ - 12, row(panel, rank) + 4, Anchor::kEnd, rank == 0 ? "label strong" : "label",
               shortened(methods_[rank].name, kNameSize, names_));
    }
  }

  // Numbers behind a panel, in two columns.
  static void draw_numbers(Svg& svg, const Panel& panel, double y, std::string_view style,
                           const std::string& first, const std::string& second) {
    svg.text(panel.right + kNumber - 4, y, Anchor::kEnd, style, first);
    svg.text(panel.right + 2 * kNumber, y, Anchor::kEnd, style, second);
  }

  static void draw_columns(Svg& svg, const Panel& panel, const Axis& x,
                           const std::vector<Tick>& ticks, std::string_view name) {
    for (const Tick& tick : ticks) {
      svg.line(x.at(tick.value), panel.top, x.at(tick.value), panel.bottom, "grid");
      svg.text(x.at(tick.value), panel.bottom + 17, Anchor::kMiddle, "tick", tick.text);
    }
    svg.line(panel.left, panel.top, panel.left, panel.bottom, "axis");
    svg.text((panel.left + panel.right) / 2, panel.bottom + 38, Anchor::kMiddle, "name", name);
  }

  [[nodiscard]] std::string point_title(const MethodSummary& method, std::size_t problem) const {
    const ContestResult& of = results_.problems[problem];
    const ContestTrace& trace = of.entries[method.index].trace;
    const double speed = method.speeds[problem];
    std::string out =
        concat(of.name, "\n", method.name, ": ", short_number(speed), " ", results_.unit);
    if (results_.peak > 0) {
      out += concat(", ", fixed(100 * speed / results_.peak, 1), " % of the peak");
    }
    if (method.speedups[problem] > 0) {
      out += concat(", ", times_text(method.speedups[problem]), " the start");
    }
    return out + concat("\n", count_of(trace.steps.size(), "measurement"), " in ",
                        duration_text(trace.elapsed_s));
  }

  void draw_speed(Svg& svg, const Panel& panel) const {
    double most = results_.peak;
    for (const MethodSummary& method : methods_) {
      most = std::max(most, *std::max_element(method.speeds.begin(), method.speeds.end()));
    }
    const Range range{0, most * 1.02};
    const Axis x = panel.horizontal(range, false);
    draw_columns(svg, panel, x, formats::linear_ticks(range, 6),
                 concat("speed of the config found, ", results_.unit));
    draw_names(svg, panel);
    draw_numbers(svg, panel, panel.top - 10, "tick", results_.unit, "\u00d7 start");
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      draw_bar(svg, panel, x, rank);
    }
    if (results_.peak > 0) {
      const double place = x.at(results_.peak);
      svg.line(place, panel.top - 6, place, panel.bottom, "peak");
      svg.text(place, panel.top - 10, Anchor::kEnd, "small peak-text",
               concat("peak ", short_number(results_.peak)));
    }
  }

  void draw_bar(Svg& svg, const Panel& panel, const Axis& x, std::size_t rank) const {
    const MethodSummary& method = methods_[rank];
    const double middle = row(panel, rank);
    const auto interval = interval_of_mean(method.speeds);
    svg.rect(panel.left, middle - 8, x.at(method.mean_speed) - panel.left, 16,
             concat("bar", best(rank)),
             count() == 1 ? point_title(method, 0)
                          : concat(method.name, ": ", short_number(method.mean_speed), " ",
                                   results_.unit, " in the geometric mean",
                                   interval ? concat(", 95 %: ", short_number(interval->low),
                                                     " to ", short_number(interval->high))
                                            : std::string()));
    for (std::size_t i = 0; count() > 1 && i < count(); ++i) {
      if (method.speeds[i] > 0) {
        svg.circle(x.at(method.speeds[i]), middle, 3, concat("point", best(rank)),
                   point_title(method, i));
      }
    }
    if (interval) {
      draw_interval(svg, x.at(interval->low), x.at(interval->high), middle);
    }
    draw_numbers(svg, panel, middle + 4, rank == 0 ? "strong" : "value",
                 method.mean_speed > 0 ? short_number(method.mean_speed) : std::string("-"),
                 method.mean_speedup > 0 ? times_text(method.mean_speedup) : std::string("-"));
  }

  static void draw_interval(Svg& svg, double low, double high, double y) {
    svg.line(low, y, high, y, "interval");
    for (const double end : {low, high}) {
      svg.line(end, y - 5, end, y + 5, "interval");
    }
  }

  void draw_time(Svg& svg, const Panel& panel) const {
    Range seen{HUGE_VAL, 0};
    const auto see = [&seen](double seconds) {
      if (seconds > 0) {
        seen = {std::min(seen.low, seconds), std::max(seen.high, seconds)};
      }
    };
    for (const ContestResult& problem : results_.problems) {
      for (const ContestEntry& method : problem.entries) {
        see(method.trace.elapsed_s);
        see(seconds_to_best(method.trace));
      }
    }
    if (!(seen.high > 0)) {
      return;
    }
    const Range range = formats::log_range(seen.low, seen.high);
    const Axis x = panel.horizontal(range, true);
    std::vector<Tick> ticks = formats::log_ticks(range, duration_text);
    // Names of ticks are wide. Where they do not fit, every other one is dropped.
    const double most = (panel.right - panel.left) / 46;
    while (static_cast<double>(ticks.size()) > most && ticks.size() > 2) {
      for (std::size_t i = 1; i < ticks.size(); ++i) {
        ticks.erase(ticks.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    draw_columns(svg, panel, x, ticks, "time of the search, logarithmic");
    draw_names(svg, panel);
    draw_numbers(svg, panel, panel.top - 10, "tick", "search", "to its best");
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      draw_seconds(svg, panel, x, rank);
    }
  }

  void draw_seconds(Svg& svg, const Panel& panel, const Axis& x, std::size_t rank) const {
    const MethodSummary& method = methods_[rank];
    const double middle = row(panel, rank);
    if (!(method.mean_search_s > 0)) {
      draw_numbers(svg, panel, middle + 4, "value", "-", "-");
      return;
    }
    Range all{HUGE_VAL, 0};
    for (const ContestResult& problem : results_.problems) {
      const double seconds = problem.entries[method.index].trace.elapsed_s;
      if (seconds > 0) {
        all = {std::min(all.low, seconds), std::max(all.high, seconds)};
      }
    }
    svg.rect(panel.left, middle - 8, x.at(method.mean_search_s) - panel.left, 16,
             concat("bar", best(rank)),
             concat(method.name, ": ", duration_text(method.mean_search_s),
                    count() > 1 ? concat(" in the geometric mean, ", duration_text(all.low), " to ",
                                         duration_text(all.high))
                                : std::string()));
    if (count() > 1) {
      svg.line(x.at(all.low), middle, x.at(all.high), middle, "span");
    }
    if (method.mean_seconds_to_best > 0) {
      svg.circle(
          x.at(method.mean_seconds_to_best), middle, 4, concat("ring", best(rank)),
          concat(method.name, ": its best after ", duration_text(method.mean_seconds_to_best)));
    }
    draw_numbers(svg, panel, middle + 4, rank == 0 ? "strong" : "value",
                 duration_text(method.mean_search_s),
                 method.mean_seconds_to_best > 0 ? duration_text(method.mean_seconds_to_best)
                                                 : std::string("-"));
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    const auto bar = [](Svg& svg) { svg.rect(2, 1, 18, 12, "bar", {}); };
    std::vector<LegendEntry> out{
        drawn_entry(count() > 1 ? "geometric mean" : "what was found, and the time it took", bar)};
    if (count() >= kFewestProblems) {
      out.push_back(
          drawn_entry("95 % interval of the mean", [](Svg& svg) { draw_interval(svg, 2, 20, 7); }));
    }
    if (count() > 1) {
      out.push_back(mark_entry("one problem", Mark::kCircle, 3, "point"));
      out.push_back(line_entry("shortest to longest search", "span"));
    }
    out.push_back(mark_entry("when its best was measured", Mark::kCircle, 4, "ring"));
    if (has_table()) {
      for (const Shade& shade : kShades) {
        out.push_back(drawn_entry(std::string(shade.text), [&](Svg& svg) {
          svg.rect(2, 0, 18, 14, concat("cell ", shade.style), {});
        }));
      }
    }
    return out;
  }

  // Returns where the table ends.
  double draw_table(Svg& svg, double top) const {
    svg.text(kMargin, top + 14, Anchor::kStart, "heading",
             concat("Speed on every problem, ", results_.unit));
    svg.text(kMargin, top + 33, Anchor::kStart, "note",
             "Shade: share of the problem's fastest. All were timed again in turns.");
    top += kTitled + 20;
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      svg.text(left_ + cell_ * (static_cast<double>(rank) + 0.5), top - 8, Anchor::kMiddle,
               rank == 0 ? "strong" : "value", shortened(methods_[rank].name, 12, cell_));
    }
    for (std::size_t i = 0; i < count(); ++i) {
      draw_cells(svg, i, top + kCell * static_cast<double>(i));
    }
    return top + kCell * static_cast<double>(count()) + 4;
  }

  void draw_cells(Svg& svg, std::size_t problem, double top) const {
    svg.text(left_ - 12, top + kCell / 2 + 4, Anchor::kEnd, "label",
             shortened(results_.problems[problem].name, kNameSize, names_));
    double fastest = 0;
    for (const MethodSummary& method : methods_) {
      fastest = std::max(fastest, method.speeds[problem]);
    }
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      const MethodSummary& method = methods_[rank];
      const double speed = method.speeds[problem];
      const std::string_view style = shade_class(fastest > 0 ? speed / fastest : 0);
      const double x = left_ + cell_ * static_cast<double>(rank);
      svg.rect(x + 1, top + 1, cell_ - 2, kCell - 2, concat("cell ", style),
               point_title(method, problem));
      svg.text(x + cell_ / 2, top + kCell / 2 + 4, Anchor::kMiddle, concat("cell-text ", style),
               speed > 0 ? short_number(speed) : std::string("-"));
    }
  }

  const ContestResults& results_;
  std::vector<MethodSummary> methods_;
  double names_ = 60;  // width of the longest name
  double left_ = 0;    // where panels and the table begin
  double width_ = 0;
  double cell_ = 46;
};

}  // namespace
}  // namespace foretune::report_internal

namespace foretune {

std::string bars_svg(const ContestResults& results, std::string_view source) {
  using namespace report_internal;  // NOLINT(google-build-using-namespace)
  std::vector<MethodSummary> methods = by_speed(results);
  return methods.empty() ? std::string()
                         : figure_svg(BarsPlot(results, std::move(methods)).draw(), source);
}

}  // namespace foretune
