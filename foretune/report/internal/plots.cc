#include "foretune/report/internal/plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/figure_text.h"

namespace foretune::report_internal {
namespace {

using formats::html_escaped;
using formats::log_range;

constexpr Panel kPanel{.left = 66, .top = 12, .right = 468, .bottom = 284};

// Ends at steps of 5 points, with room for the lowest; at least 10 points wide.
Range efficiency_range(double lowest, double highest) {
  const double low = std::floor(std::clamp(lowest - 0.01, 0.0, 0.9) * 20) / 20;
  const double high = highest > 1.001 ? std::ceil(std::min(highest, 2.0) * 20) / 20 : 1.0;
  return {low, high};
}

std::vector<Tick> efficiency_ticks(const Range& range) {
  double step = 0.02;
  for (const double wider : {0.05, 0.1, 0.2}) {
    step = (range.high - range.low) / step > 6.5 ? wider : step;
  }
  std::vector<Tick> out;
  const auto first = static_cast<int>(std::ceil(range.low / step - 1e-9));
  const auto last = static_cast<int>(std::floor(range.high / step + 1e-9));
  for (int i = first; i <= last; ++i) {
    const double value = i * step;
    out.push_back({value, concat(fixed(100 * value, 0), " %")});
  }
  return out;
}

std::string round_time_text(double nanoseconds) {
  struct Unit {
    double nanoseconds;
    std::string_view name;
  };
  static constexpr std::array kUnits{Unit{1e9, " s"}, Unit{1e6, " ms"}, Unit{1e3, " us"}};
  for (const Unit& unit : kUnits) {
    if (nanoseconds >= 0.999 * unit.nanoseconds) {
      return concat(std::round(nanoseconds / unit.nanoseconds), unit.name);
    }
  }
  return nanoseconds >= 0.999 ? concat(std::round(nanoseconds), " ns")
                              : concat(fixed(nanoseconds, 3), " ns");
}

std::vector<Tick> time_ticks(const Range& range) {
  return formats::log_ticks(range, round_time_text);
}

std::vector<Tick> size_ticks(const Range& range) {
  const double octaves = std::log2(range.high / range.low);
  const int every = std::max(1, static_cast<int>(std::ceil(octaves / 7)));
  std::vector<Tick> out;
  for (int power = 0; std::pow(2.0, power) <= range.high; power += every) {
    if (std::pow(2.0, power) >= range.low) {
      out.push_back({std::pow(2.0, power), concat(std::pow(2.0, power))});
    }
  }
  return out;
}

void draw_frame(Svg& svg, const Axis& x, const Axis& y, const std::vector<Tick>& x_ticks,
                const std::vector<Tick>& y_ticks, std::string_view x_name,
                std::string_view y_name) {
  formats::draw_frame(svg, kPanel, x, y, x_ticks, y_ticks, x_name, y_name);
}

// The model and the baselines whose lines are drawn, the model last and so on top.
std::vector<const PickerResult*> drawn_pickers(const Evaluation& evaluation) {
  std::vector<const PickerResult*> out;
  for (const PickerResult& baseline : evaluation.baselines) {
    if (!series_class(baseline.key).empty()) {
      out.push_back(&baseline);
    }
  }
  out.push_back(&evaluation.model);
  return out;
}

std::string legend(const std::vector<const PickerResult*>& pickers) {
  std::string out = "<p class=\"legend\">";
  for (auto picker = pickers.rbegin(); picker != pickers.rend(); ++picker) {
    out += concat("<span><i class=\"key ", series_class((*picker)->key), "\"></i>",
                  html_escaped((*picker)->name), "</span> ");
  }
  return out + "</p>";
}

std::string point_title(const ProblemPoint& point) {
  return concat(point.problem, "\n", percent_text(point.efficiency), " % of the best, ",
                time_text(point.best_ns));
}

// Best first, so that what is bad lies on top.
std::vector<const ProblemPoint*> worst_last(const Evaluation& evaluation) {
  std::vector<const ProblemPoint*> out;
  for (const ProblemPoint& point : evaluation.map) {
    out.push_back(&point);
  }
  std::stable_sort(out.begin(), out.end(), [](const ProblemPoint* a, const ProblemPoint* b) {
    return a->efficiency > b->efficiency;
  });
  return out;
}

// Fewer problems, larger dots.
double dot_radius(std::size_t count) { return count <= 100 ? 5.5 : count <= 600 ? 4 : 2.5; }

}  // namespace

std::string_view efficiency_class(double efficiency) {
  if (efficiency >= 0.99) {
    return "e4";
  }
  if (efficiency >= 0.95) {
    return "e3";
  }
  if (efficiency >= 0.9) {
    return "e2";
  }
  return efficiency >= 0.8 ? "e1" : "e0";
}

std::string efficiency_legend() {
  return "<p class=\"legend\"><span><i class=\"dot e0\"></i>below 80 %</span> "
         "<span><i class=\"dot e1\"></i>80 to 90 %</span> "
         "<span><i class=\"dot e2\"></i>90 to 95 %</span> "
         "<span><i class=\"dot e3\"></i>95 to 99 %</span> "
         "<span><i class=\"dot e4\"></i>99 % and more</span></p>";
}

std::string_view series_class(std::string_view key) {
  if (key.starts_with("vendor_")) {
    return "c4";
  }
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kClasses{
      {{"model", "c0"},
       {"best_single_config", "c1"},
       {"portfolio_4", "c2"},
       {"nearest_problem", "c3"},
       {"default_config", "c5"},
       {"random", "c6"}}};
  for (const auto& [name, style] : kClasses) {
    if (name == key) {
      return style;
    }
  }
  return {};
}

std::string distribution_plot(const Evaluation& evaluation) {
  std::vector<const PickerResult*> pickers = drawn_pickers(evaluation);
  // Its values are means over the configs of a problem, not what one pick would get.
  std::erase_if(pickers, [](const PickerResult* picker) { return picker->key == "random"; });
  Range values{1, 0};
  for (const PickerResult* picker : pickers) {
    for (const double efficiency : picker->efficiency) {
      values = {std::min(values.low, efficiency), std::max(values.high, efficiency)};
    }
  }
  const Range range = efficiency_range(values.low, values.high);
  const Axis x = kPanel.horizontal({0, 1}, false);
  const Axis y = kPanel.vertical(range, false);
  Svg svg(kPlotWidth, kPlotHeight,
          "Efficiency of every problem, from the worst to the best, for each way of picking");
  std::vector<Tick> x_ticks;
  for (const int percent : {0, 10, 25, 50, 75, 100}) {
    x_ticks.push_back({percent / 100.0, concat(percent, " %")});
  }
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "share of problems that do worse",
             "efficiency");
  for (const double share : {0.1, 0.5}) {
    svg.line(x.at(share), kPanel.top, x.at(share), kPanel.bottom, "guide");
    svg.text(x.at(share) + 4, kPanel.bottom - 6, Anchor::kStart, "note",
             share < 0.5 ? "P10" : "median");
  }
  if (range.high > 1) {
    svg.line(kPanel.left, y.at(1), kPanel.right, y.at(1), "guide");
  }
  for (const PickerResult* picker : pickers) {
    std::vector<double> sorted = picker->efficiency;
    std::sort(sorted.begin(), sorted.end());
    // More steps than pixels say nothing.
    const std::size_t stride = std::max<std::size_t>(1, sorted.size() / 500);
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (i % stride == 0 || i + 1 == sorted.size()) {
        const double last = std::max<double>(1, static_cast<double>(sorted.size()) - 1);
        points.emplace_back(x.at(static_cast<double>(i) / last), y.at(sorted[i]));
      }
    }
    if (points.size() == 1) {
      points.emplace_back(x.at(1), points[0].second);
    }
    svg.polyline(points, concat("series ", series_class(picker->key)),
                 concat(picker->name, ": mean ", percent_text(picker->mean_efficiency.value),
                        " %, median ", percent_text(picker->median_efficiency.value), " %, P10 ",
                        percent_text(picker->p10_efficiency.value), " %"));
  }
  return svg.finish() + legend(pickers);
}

std::string curve_plot(const Evaluation& evaluation) {
  std::vector<const PickerResult*> pickers = drawn_pickers(evaluation);
  std::erase_if(pickers, [](const PickerResult* picker) {
    return picker->measured_curve.size() < kCurveLength;
  });
  Range values{1, 0};
  for (const PickerResult* picker : pickers) {
    for (const double efficiency : picker->measured_curve) {
      values = {std::min(values.low, efficiency), std::max(values.high, efficiency)};
    }
  }
  if (pickers.empty()) {
    return {};
  }
  const Range range = efficiency_range(values.low, 1);
  const Axis x = kPanel.horizontal({0.93, kCurveLength * 1.07}, true);
  const Axis y = kPanel.vertical(range, false);
  Svg svg(kPlotWidth, kPlotHeight,
          "Mean efficiency when the first few configs are measured and the fastest is kept");
  std::vector<Tick> x_ticks;
  for (const std::size_t step : kCurveSteps) {
    x_ticks.push_back({static_cast<double>(step), concat(step)});
  }
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "configs measured per problem",
             "mean efficiency");
  for (const PickerResult* picker : pickers) {
    const std::string style(series_class(picker->key));
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < kCurveLength; ++i) {
      points.emplace_back(x.at(static_cast<double>(i + 1)), y.at(picker->measured_curve[i]));
    }
    svg.polyline(points, concat("series ", style), picker->name);
    for (const std::size_t step : kCurveSteps) {
      svg.circle(points[step - 1].first, points[step - 1].second, picker->key == "model" ? 4 : 3,
                 concat("mark ", style),
                 concat(picker->name, ", ", step,
                        " measured: ", percent_text(picker->measured_curve[step - 1]), " %"));
    }
  }
  return svg.finish() + legend(pickers);
}

std::string portfolio_plot(const Evaluation& evaluation) {
  if (evaluation.portfolio.empty()) {
    return {};
  }
  const auto most = static_cast<double>(evaluation.portfolio.back().configs);
  double low = 1;
  std::vector<Tick> x_ticks;
  for (const PortfolioPoint& point : evaluation.portfolio) {
    low = std::min(low, point.p10_efficiency);
    x_ticks.push_back({static_cast<double>(point.configs), concat(point.configs)});
  }
  const Range range = efficiency_range(low, 1);
  const Axis x = kPanel.horizontal({0.93, most * 1.07}, true);
  const Axis y = kPanel.vertical(range, false);
  Svg svg(kPlotWidth, kPlotHeight, "Efficiency of the best of the first configs of a portfolio");
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "configs of the portfolio", "efficiency");
  struct Line {
    std::string_view name;
    std::string_view style;
    double PortfolioPoint::* value;
  };
  for (const Line& line : {Line{"mean", "c0", &PortfolioPoint::mean_efficiency},
                           Line{"P10", "c1", &PortfolioPoint::p10_efficiency}}) {
    std::vector<std::pair<double, double>> points;
    for (const PortfolioPoint& point : evaluation.portfolio) {
      points.emplace_back(x.at(static_cast<double>(point.configs)), y.at(point.*line.value));
    }
    svg.polyline(points, concat("series ", line.style), line.name);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const PortfolioPoint& point = evaluation.portfolio[i];
      svg.circle(points[i].first, points[i].second, 3, concat("mark ", line.style),
                 concat(point.configs, " configs: ", line.name, " ",
                        percent_text(point.*line.value), " %"));
    }
  }
  return svg.finish();
}

std::string map_plot(const Evaluation& evaluation) {
  if (evaluation.map.empty()) {
    return {};
  }
  Range xs{HUGE_VAL, 0};
  Range ys{HUGE_VAL, 0};
  const auto size = [](double value) { return std::max(value, 1.0); };
  for (const ProblemPoint& point : evaluation.map) {
    xs = {std::min(xs.low, size(point.x)), std::max(xs.high, size(point.x))};
    ys = {std::min(ys.low, size(point.y)), std::max(ys.high, size(point.y))};
  }
  xs = log_range(xs.low, xs.high);
  ys = log_range(ys.low, ys.high);
  const Axis x = kPanel.horizontal(xs, true);
  const Axis y = kPanel.vertical(ys, true);
  Svg svg(kPlotWidth, kPlotHeight,
          "Every problem by two of its sizes, coloured by the efficiency of the pick");
  draw_frame(svg, x, y, size_ticks(xs), size_ticks(ys), evaluation.map_x, evaluation.map_y);
  for (const ProblemPoint* point : worst_last(evaluation)) {
    svg.circle(x.at(size(point->x)), y.at(size(point->y)), dot_radius(evaluation.map.size()),
               concat("dot ", efficiency_class(point->efficiency)), point_title(*point));
  }
  return svg.finish() + efficiency_legend();
}

std::string duration_plot(const Evaluation& evaluation) {
  if (evaluation.map.empty()) {
    return {};
  }
  Range times{HUGE_VAL, 0};
  double lowest = 1;
  for (const ProblemPoint& point : evaluation.map) {
    times = {std::min(times.low, point.best_ns), std::max(times.high, point.best_ns)};
    lowest = std::min(lowest, point.efficiency);
  }
  times = log_range(times.low, times.high);
  const Range range = efficiency_range(lowest, 1);
  const Axis x = kPanel.horizontal(times, true);
  const Axis y = kPanel.vertical(range, false);
  Svg svg(kPlotWidth, kPlotHeight,
          "Efficiency of every problem's pick by the time of its best config");
  draw_frame(svg, x, y, time_ticks(times), efficiency_ticks(range), "time of the best config",
             "efficiency");
  for (const ProblemPoint* point : worst_last(evaluation)) {
    svg.circle(x.at(point->best_ns), y.at(point->efficiency), dot_radius(evaluation.map.size()),
               concat("dot ", efficiency_class(point->efficiency)), point_title(*point));
  }
  return svg.finish() + efficiency_legend();
}

std::string prediction_plot(const Evaluation& evaluation) {
  if (evaluation.points.empty()) {
    return {};
  }
  Range values{HUGE_VAL, 0};
  for (const PredictionPoint& point : evaluation.points) {
    for (const float log_ns : {point.predicted_log, point.measured_log}) {
      const double time_ns = std::exp(static_cast<double>(log_ns));
      values = {std::min(values.low, time_ns), std::max(values.high, time_ns)};
    }
  }
  values = log_range(values.low, values.high);
  const Axis x = kPanel.horizontal(values, true);
  const Axis y = kPanel.vertical(values, true);
  Svg svg(kPlotWidth, kPlotHeight,
          "Predicted time against measured time of a sample of measurements");
  draw_frame(svg, x, y, time_ticks(values), time_ticks(values), "measured", "predicted");
  std::vector<std::pair<double, double>> points;
  for (const PredictionPoint& point : evaluation.points) {
    points.emplace_back(x.at(std::exp(static_cast<double>(point.measured_log))),
                        y.at(std::exp(static_cast<double>(point.predicted_log))));
  }
  svg.cloud(points, evaluation.points.size() > 800 ? "cloud dense" : "cloud");
  svg.line(x.at(values.low), y.at(values.low), x.at(values.high), y.at(values.high), "diagonal");
  return svg.finish();
}

}  // namespace foretune::report_internal
