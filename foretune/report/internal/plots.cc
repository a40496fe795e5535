#include "foretune/report/internal/plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/problem/problem.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

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

// Returns the number of a picker's series, 0 for the model; nothing where no line is drawn for it.
std::optional<std::size_t> series_of(std::string_view key) {
  if (key.starts_with("vendor_")) {
    return 4;
  }
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 6> kSeries{
      {{"model", 0},
       {"best_single_config", 1},
       {"portfolio_4", 2},
       {"nearest_problem", 3},
       {"default_config", 5},
       {"random", 6}}};
  for (const auto& [name, number] : kSeries) {
    if (name == key) {
      return number;
    }
  }
  return std::nullopt;
}

// The model and the baselines whose lines are drawn, the model last and so on top.
std::vector<const PickerResult*> drawn_pickers(const Evaluation& evaluation) {
  std::vector<const PickerResult*> out;
  for (const PickerResult& baseline : evaluation.baselines) {
    if (series_of(baseline.key)) {
      out.push_back(&baseline);
    }
  }
  out.push_back(&evaluation.model);
  return out;
}

std::vector<LegendEntry> legend_of(const std::vector<const PickerResult*>& pickers) {
  std::vector<LegendEntry> out;
  for (auto picker = pickers.rbegin(); picker != pickers.rend(); ++picker) {
    out.push_back(series_entry((*picker)->name, *series_of((*picker)->key)));
  }
  return out;
}

// Classes of efficiencies with their marks, the best first.
struct EfficiencyLevel {
  double least;
  std::string_view style;
  Mark shape;
  std::string_view text;
};
constexpr std::array kLevels{EfficiencyLevel{0.99, "e4", Mark::kCircle, "99 % and more"},
                             EfficiencyLevel{0.95, "e3", Mark::kSquare, "95 to 99 %"},
                             EfficiencyLevel{0.9, "e2", Mark::kDiamond, "90 to 95 %"},
                             EfficiencyLevel{0.8, "e1", Mark::kDown, "80 to 90 %"},
                             EfficiencyLevel{0, "e0", Mark::kCross, "below 80 %"}};

const EfficiencyLevel& level_of(double efficiency) {
  for (const EfficiencyLevel& level : kLevels) {
    if (efficiency >= level.least) {
      return level;
    }
  }
  return kLevels.back();
}

std::vector<LegendEntry> efficiency_legend() {
  std::vector<LegendEntry> out;
  for (const EfficiencyLevel& level : kLevels) {
    out.push_back(
        mark_entry(std::string(level.text), level.shape, 4.5, concat("dot ", level.style)));
  }
  return out;
}

std::string point_title(const ProblemPoint& point) {
  return concat(shown_problem(point.problem), "\n", percent_text(point.efficiency),
                " % of the best, ", time_text(point.best_ns));
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

// Draws a problem's mark: fewer problems, larger ones.
void draw_problem(Svg& svg, double x, double y, const ProblemPoint& point, std::size_t count) {
  const EfficiencyLevel& level = level_of(point.efficiency);
  svg.mark(level.shape, x, y,
           count <= 100   ? 5
           : count <= 600 ? 3.8
                          : 2.6,
           concat("dot ", level.style), point_title(point));
}

std::string mean_text(const PickerResult& picker) {
  return concat(percent_text(picker.mean_efficiency.value), " %, ",
                interval_text(picker.mean_efficiency));
}

}  // namespace

Figure plot_figure(std::string name, std::string title, std::string note, Svg svg,
                   std::vector<LegendEntry> legend) {
  return {.name = std::move(name),
          .title = std::move(title),
          .note = std::move(note),
          .width = kPlotWidth,
          .height = kPlotHeight,
          .drawing = svg.finish(),
          .legend = std::move(legend)};
}

std::string_view efficiency_class(double efficiency) { return level_of(efficiency).style; }

Figure picks_plot(const Evaluation& evaluation) {
  constexpr double kWidth = 640;
  constexpr double kRow = 26;
  constexpr double kNameLetters = 12.5;
  std::vector<const PickerResult*> pickers{&evaluation.model};
  for (const PickerResult& baseline : evaluation.baselines) {
    pickers.push_back(&baseline);
  }
  Range values{0.95, 1};
  double names = 60;
  for (const PickerResult* picker : pickers) {
    const Interval& mean = picker->mean_efficiency;
    values = {std::min({values.low, picker->p10_efficiency.value, mean.low}),
              std::max({values.high, mean.value, mean.high})};
    names = std::max(names, formats::text_width(picker->name, kNameLetters));
  }
  names = std::min(names, 260.0);
  const Panel panel{.left = 16 + names + 12,
                    .top = 6,
                    .right = kWidth - 160,
                    .bottom = 6 + kRow * static_cast<double>(pickers.size())};
  const Range range = efficiency_range(values.low, values.high);
  const Axis x = panel.horizontal(range, false);
  Svg svg = Svg::elements();
  std::vector<Tick> ticks = efficiency_ticks(range);
  for (std::size_t i = 0; ticks.size() > 5 && i < ticks.size(); ++i) {
    if (i % 2 != (ticks.size() - 1) % 2) {
      ticks[i].text.clear();  // no room for all
    }
  }
  for (const Tick& tick : ticks) {
    svg.line(x.at(tick.value), panel.top, x.at(tick.value), panel.bottom,
             tick.value == 1 ? "even" : "grid");
    svg.text(x.at(tick.value), panel.bottom + 17, Anchor::kMiddle, "tick", tick.text);
  }
  svg.text(kWidth / 2, panel.bottom + 38, Anchor::kMiddle, "name",
           "efficiency: time of the best known config over time of the pick");
  for (std::size_t i = 0; i < pickers.size(); ++i) {
    const PickerResult& picker = *pickers[i];
    const bool is_model = i == 0;
    const double y = panel.top + kRow * (static_cast<double>(i) + 0.5);
    const Interval& mean = picker.mean_efficiency;
    const double p10 = x.at(picker.p10_efficiency.value);
    const std::string title = concat(picker.name, ": mean ", mean_text(picker), ", P10 ",
                                     percent_text(picker.p10_efficiency.value), " %");
    svg.text(panel.left - 12, y + 4, Anchor::kEnd, is_model ? "label strong" : "label",
             shortened(picker.name, kNameLetters, names));
    svg.line(p10, y, x.at(mean.value), y, "guide");
    svg.line(p10, y - 6, p10, y + 6, "interval");
    svg.line(x.at(mean.low), y, x.at(mean.high), y, "series");
    svg.mark(is_model ? Mark::kCircle : Mark::kSquare, x.at(mean.value), y, is_model ? 6 : 4.5,
             is_model ? "mark c0" : "mark", title);
    svg.text(kWidth - 16, y + 4, Anchor::kEnd, is_model ? "strong" : "value", mean_text(picker));
  }
  return {.name = "picks",
          .title = "Efficiency of the model's picks beside other ways of picking",
          .note = concat("Mean over ", count_of(evaluation.model.problems, "problem"),
                         ", and its 95 % interval"),
          .width = kWidth,
          .height = panel.bottom + 46,
          .drawing = svg.finish(),
          .legend = {mark_entry("mean of the model", Mark::kCircle, 6, "mark c0"),
                     mark_entry("mean of another", Mark::kSquare, 4.5, "mark"),
                     line_entry("95 % interval over problems", "series"),
                     drawn_entry("P10: one problem in ten is worse",
                                 [](Svg& glyph) { glyph.line(11, 1, 11, 13, "interval"); })}};
}

Figure distribution_plot(const Evaluation& evaluation) {
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
  Svg svg = Svg::elements();
  std::vector<Tick> x_ticks;
  for (const int percent : {0, 10, 25, 50, 75, 100}) {
    x_ticks.push_back({percent / 100.0, concat(percent, " %")});
  }
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "share of the problems that do worse",
             "efficiency");
  for (const double share : {0.1, 0.5}) {
    svg.line(x.at(share), kPanel.top, x.at(share), kPanel.bottom, "guide");
    svg.text(x.at(share) + 4, kPanel.bottom - 6, Anchor::kStart, "small",
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
    draw_series(svg, points, *series_of(picker->key), "series",
                concat(picker->name, ": mean ", percent_text(picker->mean_efficiency.value),
                       " %, median ", percent_text(picker->median_efficiency.value), " %, P10 ",
                       percent_text(picker->p10_efficiency.value), " %"));
  }
  return plot_figure("distribution", "Efficiency of the picks, from the worst problem to the best",
                     "All problems in the order of their efficiency. The higher and flatter, the "
                     "better; a drop on the left is where picks go wrong.",
                     std::move(svg), legend_of(pickers));
}

Figure curve_plot(const Evaluation& evaluation) {
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
  Svg svg = Svg::elements();
  std::vector<Tick> x_ticks;
  for (const std::size_t step : kCurveSteps) {
    x_ticks.push_back({static_cast<double>(step), concat(step)});
  }
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "configs measured per problem",
             "mean efficiency");
  for (const PickerResult* picker : pickers) {
    const std::size_t number = *series_of(picker->key);
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < kCurveLength; ++i) {
      points.emplace_back(x.at(static_cast<double>(i + 1)), y.at(picker->measured_curve[i]));
    }
    svg.polyline(points, concat("series ", series_class(number)), picker->name);
    for (const std::size_t step : kCurveSteps) {
      svg.mark(series_mark(number), points[step - 1].first, points[step - 1].second, 4,
               concat("mark c", number),
               concat(picker->name, ", ", step,
                      " measured: ", percent_text(picker->measured_curve[step - 1]), " %"));
    }
  }
  return plot_figure("curve", "Mean efficiency when the first few choices are measured",
                     concat("The fastest of them is kept. Means over ",
                            count_of(evaluation.model.problems, "problem"), "."),
                     std::move(svg), legend_of(pickers));
}

Figure portfolio_plot(const Evaluation& evaluation) {
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
  Svg svg = Svg::elements();
  draw_frame(svg, x, y, x_ticks, efficiency_ticks(range), "configs of the portfolio", "efficiency");
  struct Line {
    std::string_view name;
    std::size_t number;
    double PortfolioPoint::* value;
  };
  for (const Line& line : {Line{"mean", 0, &PortfolioPoint::mean_efficiency},
                           Line{"P10", 1, &PortfolioPoint::p10_efficiency}}) {
    std::vector<std::pair<double, double>> points;
    for (const PortfolioPoint& point : evaluation.portfolio) {
      points.emplace_back(x.at(static_cast<double>(point.configs)), y.at(point.*line.value));
    }
    svg.polyline(points, concat("series ", series_class(line.number)), line.name);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const PortfolioPoint& point = evaluation.portfolio[i];
      svg.mark(series_mark(line.number), points[i].first, points[i].second, 4,
               concat("mark c", line.number),
               concat(count_of(point.configs, "config"), ": ", line.name, " ",
                      percent_text(point.*line.value), " %"));
    }
  }
  return plot_figure(
      "portfolio", "Efficiency of a portfolio without a model",
      "The first configs of a fixed portfolio are all measured on the problem, and the "
      "fastest is kept; what was not measured counts as 0.",
      std::move(svg), {series_entry("mean", 0), series_entry("P10", 1)});
}

Figure map_plot(const Evaluation& evaluation) {
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
  Svg svg = Svg::elements();
  draw_frame(svg, x, y, size_ticks(xs), size_ticks(ys), evaluation.map_x, evaluation.map_y);
  for (const ProblemPoint* point : worst_last(evaluation)) {
    draw_problem(svg, x.at(size(point->x)), y.at(size(point->y)), *point, evaluation.map.size());
  }
  return plot_figure(
      "map", concat("Efficiency of the picks by ", evaluation.map_x, " and ", evaluation.map_y),
      "Every mark is a problem; the worst lie on top.", std::move(svg), efficiency_legend());
}

Figure duration_plot(const Evaluation& evaluation) {
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
  Svg svg = Svg::elements();
  draw_frame(svg, x, y, time_ticks(times), efficiency_ticks(range), "time of the best config",
             "efficiency");
  for (const ProblemPoint* point : worst_last(evaluation)) {
    draw_problem(svg, x.at(point->best_ns), y.at(point->efficiency), *point, evaluation.map.size());
  }
  return plot_figure("duration", "Efficiency of the picks on short and long problems",
                     "Every mark is a problem, by the time that its best config takes.",
                     std::move(svg), efficiency_legend());
}

namespace {

// Returns the time in ns. A bad model predicts anything: what no axis could show stands at its end.
double time_on_axis(float log_ns) {
  constexpr double kLeastLog = -7;
  constexpr double kMostLog = 44;  // centuries
  return std::exp(
      std::isnan(log_ns) ? kMostLog : std::clamp(static_cast<double>(log_ns), kLeastLog, kMostLog));
}

}  // namespace

Figure prediction_plot(const Evaluation& evaluation) {
  if (evaluation.points.empty()) {
    return {};
  }
  Range values{HUGE_VAL, 0};
  for (const PredictionPoint& point : evaluation.points) {
    for (const float log_ns : {point.predicted_log, point.measured_log}) {
      const double time_ns = time_on_axis(log_ns);
      values = {std::min(values.low, time_ns), std::max(values.high, time_ns)};
    }
  }
  values = log_range(values.low, values.high);
  const Axis x = kPanel.horizontal(values, true);
  const Axis y = kPanel.vertical(values, true);
  Svg svg = Svg::elements();
  draw_frame(svg, x, y, time_ticks(values), time_ticks(values), "measured time", "predicted time");
  std::vector<std::pair<double, double>> points;
  for (const PredictionPoint& point : evaluation.points) {
    points.emplace_back(x.at(time_on_axis(point.measured_log)),
                        y.at(time_on_axis(point.predicted_log)));
  }
  svg.cloud(points, evaluation.points.size() > 800 ? "cloud dense" : "cloud");
  svg.line(x.at(values.low), y.at(values.low), x.at(values.high), y.at(values.high), "diagonal");
  return plot_figure(
      "prediction", "Predicted and measured times",
      concat("A sample of ", count_of(evaluation.points.size(), "measurement"),
             ". On the line the prediction is exact",
             std::isnan(evaluation.rmse_log_absolute)
                 ? "; the model predicts ratios, so each problem is shifted to fit its "
                   "own mean."
                 : "."),
      std::move(svg), {line_entry("prediction is exact", "diagonal")});
}

}  // namespace foretune::report_internal
