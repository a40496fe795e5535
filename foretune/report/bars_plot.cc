#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

constexpr double kLeast = 1000;  // width
constexpr double kMargin = 22;
constexpr double kNameSize = 12.5;
constexpr double kMaxName = 230;
constexpr double kRow = 27;     // of a method
constexpr double kCell = 22;    // of a problem
constexpr double kTitled = 58;  // height of a heading
constexpr double kBelow = 58;   // ticks and names of axes

// Shares of the fastest, and the texts of the legend.
struct Level {
  double least;
  std::string_view style;
  std::string_view text;
};
constexpr std::array kLevels{Level{0.98, "h4", "98 % and more"}, Level{0.9, "h3", "90 to 98 %"},
                             Level{0.75, "h2", "75 to 90 %"}, Level{0.5, "h1", "50 to 75 %"},
                             Level{0, "h0", "below 50 %"}};

std::string_view level_class(double share) {
  for (const Level& level : kLevels) {
    if (share >= level.least) {
      return level.style;
    }
  }
  return kLevels.back().style;
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
    width_ = kLeast;
    if (has_table()) {
      width_ = std::max(width_, left_ + cell_ * static_cast<double>(methods_.size()) + kMargin);
      // The table is as wide as the panels above it.
      cell_ = (width_ - kMargin - left_) / static_cast<double>(methods_.size());
      cell_ = std::min(cell_, 110.0);
    }
    rows_top_ = kTitled + 34;
    rows_bottom_ = rows_top_ + kRow * static_cast<double>(methods_.size());
    table_top_ = rows_bottom_ + kBelow + 44;
  }

  std::string draw() {
    const double height =
        has_table() ? table_top_ + kTitled + 18 + kCell * static_cast<double>(count()) + 48
                    : rows_bottom_ + kBelow + 34;
    Svg svg = Svg::standalone(width_, height, "Speed of the configs found, and seconds of search",
                              contest_style());
    svg.rect(0, 0, width_, height, "page", {});
    draw_heading(svg, kMargin, 34, heading(), explanation());
    draw_names(svg);
    // Name, bars, two columns of numbers, seconds, their column.
    const double free = width_ - kMargin - left_ - 62 - 66 - 70 - 18;
    const Panel speed{left_, rows_top_, left_ + 0.6 * free, rows_bottom_};
    const Panel time{speed.right + 62 + 66 + 18, rows_top_, width_ - kMargin - 70, rows_bottom_};
    draw_speed(svg, speed);
    draw_time(svg, time);
    draw_key(svg, rows_bottom_ + kBelow + 12);
    if (has_table()) {
      draw_table(svg);
    }
    return svg.finish() + "\n";
  }

 private:
  [[nodiscard]] std::size_t count() const { return results_.problems.size(); }
  [[nodiscard]] bool has_table() const { return count() > 1; }
  [[nodiscard]] double row(std::size_t rank) const {
    return rows_top_ + kRow * (static_cast<double>(rank) + 0.5);
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
                        : concat("Geometric means over ", count(),
                                 " problems, fastest first; every dot is a problem");
  }

  void draw_names(Svg& svg) const {
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      svg.text(left_ - 12, row(rank) + 4, Anchor::kEnd, rank == 0 ? "label strong" : "label",
               shortened(methods_[rank].name, kNameSize, names_));
    }
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
    return out +
           concat("\n", trace.steps.size(), " measurements in ", duration_text(trace.elapsed_s));
  }

  void draw_speed(Svg& svg, const Panel& panel) const {
    double most = results_.peak;
    for (const MethodSummary& method : methods_) {
      most = std::max(most, *std::max_element(method.speeds.begin(), method.speeds.end()));
    }
    const Range range{0, most * 1.02};
    const Axis x = panel.horizontal(range, false);
    draw_columns(svg, panel, x, formats::linear_ticks(range, 7), results_.unit);
    svg.text(panel.right + 62, rows_top_ - 10, Anchor::kEnd, "tick", results_.unit);
    svg.text(panel.right + 62 + 56, rows_top_ - 10, Anchor::kEnd, "tick", "\u00d7 start");
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      draw_bar(svg, panel, x, rank);
    }
    if (results_.peak > 0) {
      const double place = x.at(results_.peak);
      svg.line(place, panel.top - 6, place, panel.bottom, "peak");
      svg.text(place, panel.top - 10, Anchor::kEnd, "peak-text",
               concat("peak ", short_number(results_.peak)));
    }
  }

  void draw_bar(Svg& svg, const Panel& panel, const Axis& x, std::size_t rank) const {
    const MethodSummary& method = methods_[rank];
    const double middle = row(rank);
    svg.rect(panel.left, middle - 8, x.at(method.mean_speed) - panel.left, 16,
             concat("bar", best(rank)),
             count() == 1 ? point_title(method, 0)
                          : concat(method.name, ": ", short_number(method.mean_speed), " ",
                                   results_.unit, " in the geometric mean"));
    for (std::size_t i = 0; count() > 1 && i < count(); ++i) {
      if (method.speeds[i] > 0) {
        svg.circle(x.at(method.speeds[i]), middle, 3, concat("point", best(rank)),
                   point_title(method, i));
      }
    }
    const std::string_view style = rank == 0 ? "strong" : "value";
    svg.text(panel.right + 62, middle + 4, Anchor::kEnd, style,
             method.mean_speed > 0 ? short_number(method.mean_speed) : std::string("-"));
    svg.text(panel.right + 62 + 56, middle + 4, Anchor::kEnd, style,
             method.mean_speedup > 0 ? times_text(method.mean_speedup) : std::string("-"));
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
    svg.text(width_ - kMargin, rows_top_ - 10, Anchor::kEnd, "tick", "search");
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      draw_seconds(svg, panel, x, rank);
    }
  }

  void draw_seconds(Svg& svg, const Panel& panel, const Axis& x, std::size_t rank) const {
    const MethodSummary& method = methods_[rank];
    const double middle = row(rank);
    if (!(method.mean_search_s > 0)) {
      svg.text(width_ - kMargin, middle + 4, Anchor::kEnd, "value", "-");
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
    svg.text(width_ - kMargin, middle + 4, Anchor::kEnd, rank == 0 ? "strong" : "value",
             duration_text(method.mean_search_s));
  }

  // Draws the meaning of the marks.
  void draw_key(Svg& svg, double y) const {
    double x = left_;
    const auto word = [&](std::string_view text) {
      svg.text(x + 20, y + 4, Anchor::kStart, "note", text);
      x += 20 + formats::text_width(text, 12) + 14;
    };
    svg.rect(x, y - 6, 14, 12, "bar", {});
    word(count() > 1 ? "geometric mean" : "what was found, and the time it took");
    if (count() > 1) {
      svg.circle(x + 8, y, 3, "point", {});
      word("one problem");
      svg.line(x, y, x + 14, y, "span");
      word("shortest to longest search");
    }
    svg.circle(x + 8, y, 4, "ring", {});
    word("when its best was measured");
  }

  void draw_table(Svg& svg) const {
    draw_heading(
        svg, kMargin, table_top_ + 12, concat("Speed on every problem, ", results_.unit),
        "Colour: share of the fastest of the problem. All were timed again in turns, after all "
        "searches.");
    const double top = table_top_ + kTitled + 14;
    for (std::size_t rank = 0; rank < methods_.size(); ++rank) {
      svg.text(left_ + cell_ * (static_cast<double>(rank) + 0.5), top - 8, Anchor::kMiddle,
               rank == 0 ? "strong" : "value", shortened(methods_[rank].name, 12, cell_));
    }
    for (std::size_t i = 0; i < count(); ++i) {
      draw_cells(svg, i, top + kCell * static_cast<double>(i));
    }
    double x = left_;
    const double y = top + kCell * static_cast<double>(count()) + 22;
    for (const Level& level : kLevels) {
      svg.rect(x, y - 7, 14, 14, concat("cell ", level.style), {});
      svg.text(x + 20, y + 4, Anchor::kStart, "note", level.text);
      x += 20 + formats::text_width(level.text, 12) + 14;
    }
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
      const std::string_view style = level_class(fastest > 0 ? speed / fastest : 0);
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
  double rows_top_ = 0;
  double rows_bottom_ = 0;
  double table_top_ = 0;
};

}  // namespace
}  // namespace foretune::report_internal

namespace foretune {

std::string bars_svg(const ContestResults& results) {
  std::vector<report_internal::MethodSummary> methods = report_internal::by_speed(results);
  return methods.empty() ? std::string()
                         : report_internal::BarsPlot(results, std::move(methods)).draw();
}

}  // namespace foretune
