#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

constexpr double kViolinLeft = 64;
constexpr double kRight = 22;
constexpr double kViolinTop = 10;
constexpr double kViolinBottom = 324;
constexpr std::size_t kMinValues = 4;  // fewer do not make a distribution
constexpr int kSlices = 60;
// In logarithms: a difference below the noise of timing.
constexpr double kMinBandwidth = 0.01;

// Returns the known speedups in ascending order.
std::vector<double> sorted_speedups(const MethodSummary& method) {
  std::vector<double> out;
  for (const double speedup : method.speedups) {
    if (speedup > 0 && std::isfinite(speedup)) {
      out.push_back(speedup);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Returns the bandwidth by Silverman's rule of thumb (1986), with the quartiles against tails.
double bandwidth(const std::vector<double>& logs) {
  const double centre = mean(logs);
  double squares = 0;
  for (const double value : logs) {
    squares += (value - centre) * (value - centre);
  }
  const double deviation = std::sqrt(squares / static_cast<double>(logs.size() - 1));
  const double quartiles = (quantile(logs, 0.75) - quantile(logs, 0.25)) / 1.34;
  const double spread = quartiles > 0 ? std::min(deviation, quartiles) : deviation;
  return std::max(kMinBandwidth, 0.9 * spread * std::pow(static_cast<double>(logs.size()), -0.2));
}

// Returns the density of a kernel estimate with a Gaussian. Its scale does not matter.
double density(const std::vector<double>& logs, double width, double at) {
  double out = 0;
  for (const double value : logs) {
    const double distance = (at - value) / width;
    out += std::exp(-0.5 * distance * distance);
  }
  return out;
}

// Returns ticks that are finer than for other values where all are within a power of ten, since
// gains are usually small factors.
std::vector<formats::Tick> ratio_ticks(const Range& range) {
  const auto text = [](double value) { return concat(value, "\u00d7"); };
  if (range.high / range.low > 10) {
    return formats::log_ticks(range, text);
  }
  std::vector<formats::Tick> out;
  for (const double decade : {0.01, 0.1, 1.0, 10.0, 100.0, 1000.0}) {
    for (const int tenths : {10, 15, 20, 30, 40, 50, 70}) {
      const double value = tenths * decade / 10;
      if (value >= range.low && value <= range.high) {
        out.push_back({value, text(value)});
      }
    }
  }
  return out;
}

class ViolinPlot {
 public:
  explicit ViolinPlot(const ContestResults& results, const std::vector<MethodSummary>& methods)
      : results_(results) {
    for (const MethodSummary& method : methods) {
      std::vector<double> speedups = sorted_speedups(method);
      if (!speedups.empty()) {
        seen_ = {std::min(seen_.low, speedups.front()), std::max(seen_.high, speedups.back())};
        column_ = std::max(column_, formats::text_width(method.name, 12.5) + 8);
        columns_.push_back({&method, std::move(speedups)});
      }
    }
  }

  Figure draw() {
    if (columns_.empty()) {
      return {};
    }
    const auto count = static_cast<double>(columns_.size());
    column_ = std::clamp(column_, 66.0, 150.0);
    const double width = std::max(kContestWidth, kViolinLeft + kRight + count * column_);
    column_ = (width - kViolinLeft - kRight) / count;
    Svg svg = Svg::elements();
    const Panel panel{kViolinLeft, kViolinTop, kViolinLeft + count * column_, kViolinBottom};
    const Range range = formats::log_range(std::min(seen_.low, 1.0), std::max(seen_.high, 1.0));
    const Axis y = panel.vertical(range, true);
    for (const formats::Tick& tick : ratio_ticks(range)) {
      const double place = y.at(tick.value);
      svg.line(panel.left, place, panel.right, place, tick.value == 1 ? "even" : "grid");
      svg.text(panel.left - 8, place + 4, Anchor::kEnd, "tick", tick.text);
    }
    svg.vertical_text(20, (kViolinTop + kViolinBottom) / 2, "name",
                      "speed over the start, logarithmic");
    svg.text(panel.left - 8, kViolinBottom + 46, Anchor::kEnd, "tick",
             results_.problems.size() == 1 ? "speed" : "median");
    for (std::size_t rank = 0; rank < columns_.size(); ++rank) {
      draw_column(svg, y, rank);
    }
    const bool is_distribution = results_.problems.size() >= kMinValues;
    if (is_distribution) {
      svg.text(panel.left - 8, kViolinBottom + 64, Anchor::kEnd, "tick", "95 %");
    }
    Figure figure{.name = "violin",
                  .title = "Speed of the configs found over the one that a search starts from",
                  .note = explanation(),
                  .width = width,
                  .height = kViolinBottom + (is_distribution ? 70 : 54),
                  .drawing = svg.finish(),
                  .legend = {}};
    if (is_distribution) {
      figure.legend = {
          mark_entry("median", Mark::kCircle, 4.5, "median"),
          drawn_entry("quartiles", [](Svg& glyph) { glyph.rect(8, 0, 5, 14, "box", {}); }),
          mark_entry("a problem", Mark::kCircle, 2.4, "point")};
    }
    return figure;
  }

 private:
  struct Column {
    const MethodSummary* method;
    std::vector<double> speedups;  // ascending
  };

  [[nodiscard]] std::string explanation() const {
    const std::size_t count = results_.problems.size();
    return count == 1 ? concat(results_.problems[0].name, ", fastest strategy first")
           : count < kMinValues
               ? concat("Each dot is one of ", count, " problems; fastest strategy first")
               : concat(
                     "Distribution over ", count,
                     " problems, fastest strategy first; below, the median and its 95 % interval");
  }

  void draw_column(Svg& svg, const Axis& y, std::size_t rank) const {
    const Column& column = columns_[rank];
    const double x = kViolinLeft + column_ * (static_cast<double>(rank) + 0.5);
    const double middle = median(column.speedups);
    const bool is_distribution = column.speedups.size() >= kMinValues;
    if (is_distribution) {
      draw_violin(svg, y, x, rank);
    }
    draw_points(svg, y, x, rank);
    if (is_distribution) {
      const double low = y.at(quantile(column.speedups, 0.25));
      const double high = y.at(quantile(column.speedups, 0.75));
      svg.rect(x - 2.5, high, 5, low - high, "box", {});
      svg.circle(x, y.at(middle), 4.5, "median",
                 concat(column.method->name, ": median ", times_text(middle)));
    }
    const std::string_view style = rank == 0 ? "label strong" : "label";
    svg.text(x, kViolinBottom + 24, Anchor::kMiddle, style,
             shortened(column.method->name, 12.5, column_));
    svg.text(x, kViolinBottom + 46, Anchor::kMiddle, rank == 0 ? "strong" : "value",
             times_text(middle));
    if (is_distribution) {
      Rng rng(1);
      const BootstrapInterval interval = bootstrap_interval(column.speedups, median, 1000, rng);
      svg.text(x, kViolinBottom + 64, Anchor::kMiddle, "small",
               concat(short_number(interval.low), "\u2013", short_number(interval.high)));
    }
  }

  void draw_violin(Svg& svg, const Axis& y, double x, std::size_t rank) const {
    const Column& column = columns_[rank];
    const std::vector<double> logs = logarithms(column);
    const double width = bandwidth(logs);
    // Extends a little beyond the ends, so that the shape closes.
    const double low = logs.front() - width;
    const double high = logs.back() + width;
    std::array<double, kSlices + 1> densities{};
    double most = 0;
    for (int i = 0; i <= kSlices; ++i) {
      const double at = low + (high - low) * i / kSlices;
      densities[static_cast<std::size_t>(i)] = density(logs, width, at);
      most = std::max(most, densities[static_cast<std::size_t>(i)]);
    }
    std::vector<std::pair<double, double>> outline;
    for (const double side : {1.0, -1.0}) {
      for (int step = 0; step <= kSlices; ++step) {
        const int i = side > 0 ? step : kSlices - step;
        outline.emplace_back(
            x + side * half_width() * densities[static_cast<std::size_t>(i)] / most,
            y.at(std::exp(low + (high - low) * i / kSlices)));
      }
    }
    svg.polygon(
        outline, rank == 0 ? "violin best" : "violin",
        concat(column.method->name, ": median ", times_text(median(column.speedups)),
               ", quartiles ", times_text(quantile(column.speedups, 0.25)), " and ",
               times_text(quantile(column.speedups, 0.75)), ", ",
               times_text(column.speedups.front()), " to ", times_text(column.speedups.back())));
  }

  // Draws dense points beside each other by the golden ratio, which spaces any number evenly.
  void draw_points(Svg& svg, const Axis& y, double x, std::size_t rank) const {
    const Column& column = columns_[rank];
    const bool is_distribution = column.speedups.size() >= kMinValues;
    const std::vector<double> logs = logarithms(column);
    const double width = is_distribution ? bandwidth(logs) : 1;
    double most = 0;
    for (const double value : logs) {
      most = std::max(most, density(logs, width, value));
    }
    std::size_t number = 0;
    for (std::size_t i = 0; i < results_.problems.size(); ++i) {
      const double speedup = column.method->speedups[i];
      if (!(speedup > 0)) {
        continue;
      }
      const double side = 2 * std::fmod(0.618034 * static_cast<double>(++number), 1.0) - 1;
      const double room = 0.8 * half_width() * density(logs, width, std::log(speedup)) / most;
      svg.circle(is_distribution ? x + side * room : x, y.at(speedup), is_distribution ? 2.4 : 5,
                 concat(is_distribution ? "point" : "end", rank == 0 ? " best" : ""),
                 concat(results_.problems[i].name, "\n", column.method->name, ": ",
                        times_text(speedup), " the start"));
    }
  }

  static std::vector<double> logarithms(const Column& column) {
    std::vector<double> out;
    for (const double speedup : column.speedups) {
      out.push_back(std::log(speedup));
    }
    return out;
  }
  [[nodiscard]] double half_width() const { return std::min(0.44 * column_, 46.0); }

  const ContestResults& results_;
  std::vector<Column> columns_;
  Range seen_{HUGE_VAL, 0};
  double column_ = 0;  // width of each
};

}  // namespace
}  // namespace foretune::report_internal

namespace foretune {

std::string violin_svg(const ContestResults& results, std::string_view source) {
  using namespace report_internal;  // NOLINT(google-build-using-namespace)
  const std::vector<MethodSummary> methods = by_speed(results);
  return figure_svg(ViolinPlot(results, methods).draw(), source);
}

}  // namespace foretune
