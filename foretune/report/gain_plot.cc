#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

constexpr double kLeft = 76;
constexpr double kPanelHeight = 230;
constexpr double kBetween = 64;    // ticks and the name of an axis
constexpr std::size_t kMany = 80;  // lines, from which on each is fainter

// A speed that holds from a place on: after so many actions or measurements.
struct Change {
  double place = 0;
  double speed = 0;
};
// By place; the first one is where the line begins.
struct Line {
  std::vector<Change> changes;
  double end = 0;
};

// After every action; what is refused on the way has no speed, and the one before holds.
Line line_of_actions(const ContestEntry& method) {
  Line line;
  for (std::size_t i = 0; i < method.speeds_on_way.size(); ++i) {
    if (method.speeds_on_way[i] > 0) {
      line.changes.push_back({static_cast<double>(i), method.speeds_on_way[i]});
    }
  }
  line.end =
      method.speeds_on_way.empty() ? 0 : static_cast<double>(method.speeds_on_way.size() - 1);
  return line;
}

// The best so far after every measurement, where it changes.
Line line_of_measurements(const ContestEntry& method) {
  Line line;
  double best = 0;
  for (std::size_t i = 0; i < method.trace.steps.size(); ++i) {
    if (method.trace.steps[i].speed > best) {
      best = method.trace.steps[i].speed;
      line.changes.push_back({static_cast<double>(i + 1), best});
    }
  }
  line.end = static_cast<double>(method.trace.steps.size());
  return line;
}

// The geometric mean of all lines wherever one of them changes; lines that ended hold their last
// speed. It begins where all of them have begun, so that it never is one of fewer.
Line mean_line(const std::vector<Line>& lines) {
  Line out;
  std::vector<double> places;
  double begin = 0;
  for (const Line& line : lines) {
    if (!line.changes.empty()) {
      begin = std::max(begin, line.changes.front().place);
      out.end = std::max(out.end, line.end);
      for (const Change& change : line.changes) {
        places.push_back(change.place);
      }
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<std::size_t> next(lines.size(), 0);
  for (const double place : places) {
    std::vector<double> speeds;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::vector<Change>& changes = lines[i].changes;
      while (next[i] < changes.size() && changes[next[i]].place <= place) {
        ++next[i];
      }
      if (next[i] > 0) {
        speeds.push_back(changes[next[i] - 1].speed);
      }
    }
    if (place >= begin) {
      out.changes.push_back({place, mean_of_known(speeds)});
    }
  }
  return out;
}

struct Method {
  const MethodSummary* summary = nullptr;
  std::vector<Line> lines;  // one per problem
  Line mean;
};

std::vector<Method> methods_of(const ContestResults& results,
                               const std::vector<MethodSummary>& summaries,
                               Line (*line_of)(const ContestEntry& method)) {
  std::vector<Method> out;
  for (const MethodSummary& summary : summaries) {
    Method method{.summary = &summary};
    for (const ContestResult& problem : results.problems) {
      method.lines.push_back(line_of(problem.entries[summary.index]));
    }
    method.mean = mean_line(method.lines);
    out.push_back(std::move(method));
  }
  return out;
}

class GainPlot {
 public:
  GainPlot(const ContestResults& results, const std::vector<MethodSummary>& summaries)
      : results_(results),
        summaries_(summaries),
        by_actions_(methods_of(results, summaries, line_of_actions)),
        by_measurements_(methods_of(results, summaries, line_of_measurements)) {
    for (const std::vector<Method>* methods : {&by_actions_, &by_measurements_}) {
      for (const Method& method : *methods) {
        for (const Line& line : method.lines) {
          for (const Change& change : line.changes) {
            most_ = std::max(most_, shown(change.speed));
          }
        }
      }
    }
  }

  Figure draw() {
    const double right = kContestWidth - 22;
    const bool has_actions = std::ranges::any_of(
        by_actions_, [](const Method& method) { return !method.mean.changes.empty(); });
    const Panel actions{kLeft, 10, right, 10 + kPanelHeight};
    const double top = has_actions ? actions.bottom + kBetween : 10;
    const Panel measurements{kLeft, top, right, top + kPanelHeight};
    Svg svg = Svg::elements();
    const Range speed{0, most_ * 1.03};
    if (has_actions) {
      draw_actions(svg, actions, speed);
    }
    draw_measurements(svg, measurements, speed);
    const std::string behind =
        results_.problems.size() > 1
            ? concat("Geometric means over ", results_.problems.size(),
                     " problems, with their 95 % intervals in the legend; each problem is a faint "
                     "line.")
            : concat(results_.problems[0].name, ".");
    return {
        .name = "gain",
        .title = has_actions ? "Speed after every action and after every measurement, by strategy"
                             : "Best speed so far after every measurement, by strategy",
        .note = concat(has_actions ? "Above: on the way to the config found. Below: the best so "
                                     "far. "
                                   : "",
                       behind),
        .width = kContestWidth,
        .height = measurements.bottom + 46,
        .drawing = svg.finish(),
        .legend = legend()};
  }

 private:
  [[nodiscard]] bool has_peak() const { return results_.peak > 0; }
  [[nodiscard]] double shown(double speed) const {
    return has_peak() ? 100 * speed / results_.peak : speed;
  }
  [[nodiscard]] std::string speed_name() const {
    return has_peak() ? concat("% of the peak, ", short_number(results_.peak), " ", results_.unit)
                      : results_.unit;
  }
  [[nodiscard]] std::string speed_text(double speed) const {
    return has_peak() ? concat(fixed(shown(speed), 1), " %")
                      : concat(short_number(speed), " ", results_.unit);
  }

  void draw_actions(Svg& svg, const Panel& panel, const Range& speed) const {
    double most = 1;
    for (const Method& method : by_actions_) {
      most = std::max(most, method.mean.end);
    }
    const Axis x = panel.horizontal({0, most}, false);
    const Axis y = panel.vertical(speed, false);
    const std::vector<Tick> ticks = formats::whole_ticks({0, most}, 10);
    formats::draw_frame(svg, panel, x, y, ticks, speed_ticks(speed),
                        "actions that build the config", speed_name());
    draw_methods(svg, by_actions_, x, y, false);
  }

  void draw_measurements(Svg& svg, const Panel& panel, const Range& speed) const {
    double most = 2;
    for (const Method& method : by_measurements_) {
      most = std::max(most, method.mean.end);
    }
    const Range range{1, most};
    const Axis x = panel.horizontal(range, true);
    const Axis y = panel.vertical(speed, false);
    const auto ticks = formats::log_ticks(range, [](double value) { return fixed(value, 0); });
    formats::draw_frame(svg, panel, x, y, ticks, speed_ticks(speed), "measurements, logarithmic",
                        speed_name());
    draw_methods(svg, by_measurements_, x, y, true);
  }

  [[nodiscard]] std::vector<Tick> speed_ticks(const Range& speed) const {
    return formats::linear_ticks(speed, 6, has_peak() ? " %" : "");
  }

  // Speeds that hold until the next are steps, actions lead from one to the next.
  [[nodiscard]] Places points_of(const Line& line, const Axis& x, const Axis& y,
                                 bool is_steps) const {
    Places out;
    for (const Change& change : line.changes) {
      const double place = x.at(change.place);
      const double height = y.at(shown(change.speed));
      if (is_steps && !out.empty()) {
        out.emplace_back(place, out.back().second);
      }
      out.emplace_back(place, height);
    }
    if (!out.empty() && line.end > line.changes.back().place) {
      out.emplace_back(x.at(line.end), out.back().second);
    }
    return out;
  }

  // The fastest last, and so on top; means above all that is behind.
  void draw_methods(Svg& svg, const std::vector<Method>& methods, const Axis& x, const Axis& y,
                    bool is_steps) const {
    const bool is_many = methods.size() * results_.problems.size() > kMany;
    svg.open_group(is_many ? "methods many" : "methods");
    for (std::size_t left = methods.size(); left > 0; --left) {
      const Method& method = methods[left - 1];
      const std::string style = series_class(left - 1);
      svg.open_group("method");
      for (std::size_t i = 0; methods[0].lines.size() > 1 && i < method.lines.size(); ++i) {
        const Line& line = method.lines[i];
        if (!line.changes.empty()) {
          svg.polyline(points_of(line, x, y, is_steps), concat("one ", style),
                       concat(results_.problems[i].name, "\n", method.summary->name, ": ",
                              speed_text(line.changes.back().speed)));
        }
      }
      if (!method.mean.changes.empty()) {
        const Places points = points_of(method.mean, x, y, is_steps);
        const std::string title =
            concat(method.summary->name, ": ", speed_text(method.mean.changes.back().speed),
                   " after ", method.mean.end, is_steps ? " measurements" : " actions");
        draw_series(svg, points, left - 1, "series mean", title);
        svg.mark(series_mark(left - 1), points.back().first, points.back().second, 4.5,
                 concat("mark ", style), title);
      }
      svg.close_group();
    }
    svg.close_group();
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> out;
    for (std::size_t rank = 0; rank < summaries_.size(); ++rank) {
      const MethodSummary& summary = summaries_[rank];
      std::string text = concat(
          summary.name, ": ", summary.mean_speed > 0 ? speed_text(summary.mean_speed) : "nothing");
      if (const auto interval = interval_of_mean(summary.speeds)) {
        text += concat(" (", short_number(shown(interval->low)), " to ",
                       short_number(shown(interval->high)), ")");
      }
      out.push_back(series_entry(std::move(text), rank));
    }
    return out;
  }

  const ContestResults& results_;
  const std::vector<MethodSummary>& summaries_;
  std::vector<Method> by_actions_;
  std::vector<Method> by_measurements_;
  double most_ = 0;
};

}  // namespace
}  // namespace foretune::report_internal

namespace foretune {

std::string gain_svg(const ContestResults& results, std::string_view source) {
  using namespace report_internal;  // NOLINT(google-build-using-namespace)
  const std::vector<MethodSummary> summaries = by_speed(results);
  return summaries.empty() ? std::string()
                           : figure_svg(GainPlot(results, summaries).draw(), source);
}

}  // namespace foretune
