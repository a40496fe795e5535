#include "foretune/report/internal/approx_plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/drawing.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/plots.h"

namespace foretune::report_internal {
namespace {

using approx::ApproxConfig;
using approx::ApproxResult;
using Place = std::pair<double, double>;

constexpr Panel kApproxPanel{.left = 62, .top = 12, .right = 468, .bottom = 284};
constexpr int kAxisTicks = 6;
// Losses beyond so many times the largest budget are drawn at the edge.
constexpr double kShownLosses = 2;

// A little wider than the values, which are finite.
Range padded(double low, double high) {
  const double margin = 0.05 * std::max(high - low, 1e-9);
  return {low - margin, high + margin};
}

double largest_budget(const ApproxReport& report) {
  return report.budgets.empty() ? 1
                                : *std::max_element(report.budgets.begin(), report.budgets.end());
}

std::string times_faster(double speedup) { return concat(fixed(speedup, 2), "\u00d7"); }

std::string title_of(const ApproxConfig& each, std::string_view unit) {
  std::string out = concat(times_faster(each.speedup), ", ", time_text(each.time_ns),
                           "\nloss on tuning images ", number_text(each.tune_loss, 2), " ", unit,
                           ", at most ", number_text(each.loss_high, 2));
  if (std::isfinite(each.test_loss)) {
    out += concat("\nloss on test images ", number_text(each.test_loss, 2), " ", unit);
  }
  return each.text.empty() ? out : concat(out, "\n", each.text);
}

// Values of two kinds in one unit, with the line on which both are equal.
struct Pair {
  double x = 0;
  double y = 0;
  double y_high = kNotANumber;  // a line from y up to it, where there is one
  std::string title;
};

// Fills the drawing of a figure, and the meaning of its line.
Figure pair_plot(const std::vector<Pair>& pairs, Figure figure, std::string_view x_name,
                 std::string_view y_name, std::string_view style) {
  if (pairs.empty()) {
    return {};
  }
  Range seen{pairs[0].x, pairs[0].x};
  for (const Pair& pair : pairs) {
    for (const double value : {pair.x, pair.y, pair.y_high}) {
      if (std::isfinite(value)) {
        seen = {std::min(seen.low, value), std::max(seen.high, value)};
      }
    }
  }
  const Range range = padded(seen.low, seen.high);
  const Axis x = kApproxPanel.horizontal(range, false);
  const Axis y = kApproxPanel.vertical(range, false);
  Svg svg = Svg::elements();
  const std::vector<Tick> ticks = formats::linear_ticks(range, kAxisTicks);
  formats::draw_frame(svg, kApproxPanel, x, y, ticks, ticks, x_name, y_name);
  svg.line(x.at(range.low), y.at(range.low), x.at(range.high), y.at(range.high), "diagonal");
  for (const Pair& pair : pairs) {
    if (std::isfinite(pair.y_high)) {
      svg.line(x.at(pair.x), y.at(pair.x), x.at(pair.x), y.at(pair.y_high), "axis");
    }
  }
  const double radius = style.starts_with("mark") ? 4.6 : 3.2;
  for (const Pair& pair : pairs) {
    svg.circle(x.at(pair.x), y.at(pair.y), radius, style, pair.title);
  }
  figure.legend.push_back(line_entry("both are equal", "diagonal"));
  return plot_figure(std::move(figure.name), std::move(figure.title), std::move(figure.note),
                     std::move(svg), std::move(figure.legend));
}

// The networks that the models recommended.
std::vector<const ApproxConfig*> recommended(const ApproxResult& result) {
  std::vector<const ApproxConfig*> out;
  for (const ApproxConfig& each : result.networks) {
    if (each.predicted_ns > 0) {
      out.push_back(&each);
    }
  }
  return out;
}

class LossBySpeedup {
 public:
  explicit LossBySpeedup(const ApproxReport& report)
      : report_(report),
        result_(report.result),
        x_(speedups()),
        y_(losses()),
        x_axis_(kApproxPanel.horizontal(x_, false)),
        y_axis_(kApproxPanel.vertical(y_, false)) {
    for (const double budget : report.budgets) {
      if (const auto best = fastest_within(result_, budget)) {
        best_.insert(*best);
      }
    }
  }

  Figure draw() {
    const double most = y_axis_.at(largest_budget(report_));
    svg_.rect(kApproxPanel.left, kApproxPanel.top, kApproxPanel.right - kApproxPanel.left,
              most - kApproxPanel.top, "forbidden", {});
    formats::draw_frame(svg_, kApproxPanel, x_axis_, y_axis_,
                        formats::linear_ticks(x_, kAxisTicks, "\u00d7"),
                        formats::linear_ticks(y_, kAxisTicks), "speed-up over the exact network",
                        concat("loss on tuning images, ", report_.unit));
    for (const double budget : report_.budgets) {
      const double y = y_axis_.at(budget);
      svg_.line(kApproxPanel.left, y, kApproxPanel.right, y,
                budget == largest_budget(report_) ? "limit" : "limit loose");
    }
    draw_measured();
    draw_chosen();
    svg_.mark(kExact, x_axis_.at(1), y_axis_.at(0), 5, "mark c3",
              concat("exact network: ", time_text(result_.exact.time_ns)));
    for (const double budget : report_.budgets) {
      svg_.text(kApproxPanel.left + 6, y_axis_.at(budget) - 4, Anchor::kStart, "small tag",
                concat("budget ", budget));
    }
    return plot_figure(
        "speedup", "Speed-up of the measured networks and what it loses",
        "A network keeps a budget when its loss on the tuning images and a margin stay "
        "below it; the margin covers the loss on other images in 19 of 20 cases.",
        std::move(svg_), legend());
  }

 private:
  [[nodiscard]] Range speedups() const {
    Range seen{1, 1.1};
    for (const auto* networks : {&result_.networks, &result_.chosen}) {
      for (const ApproxConfig& each : *networks) {
        seen = {std::min(seen.low, each.speedup), std::max(seen.high, each.speedup)};
      }
    }
    return padded(seen.low, seen.high);
  }

  [[nodiscard]] Range losses() const {
    const double budget = largest_budget(report_);
    Range seen{0, 1.1 * budget};
    for (const ApproxConfig& each : result_.networks) {
      seen = {std::min(seen.low, each.tune_loss), std::max(seen.high, each.tune_loss)};
    }
    return padded(seen.low, std::min(seen.high, kShownLosses * std::max(budget, 0.5)));
  }

  // Those that keep no budget first, and so below. Chosen ones are drawn by their final times.
  void draw_measured() {
    std::set<Config> chosen;
    for (const ApproxConfig& each : result_.chosen) {
      chosen.insert(each.config);
    }
    for (const bool keeps : {false, true}) {
      for (const ApproxConfig& each : result_.networks) {
        if (std::isfinite(each.budget) == keeps && !chosen.contains(each.config)) {
          svg_.mark(keeps ? Mark::kCircle : Mark::kCross, x_axis_.at(each.speedup),
                    y_axis_.at(each.tune_loss), keeps ? 3.2 : 2.6,
                    keeps ? "trial met" : "trial missed", title_of(each, report_.unit));
        }
      }
    }
  }

  void draw_chosen() {
    for (const ApproxConfig& each : result_.chosen) {
      const double x = x_axis_.at(each.speedup);
      svg_.line(x, y_axis_.at(each.tune_loss), x, y_axis_.at(each.loss_high), "axis");
    }
    for (const bool is_best : {false, true}) {
      for (std::size_t i = 0; i < result_.chosen.size(); ++i) {
        const ApproxConfig& each = result_.chosen[i];
        if (best_.contains(i) == is_best) {
          svg_.mark(is_best ? kBest : Mark::kCircle, x_axis_.at(each.speedup),
                    y_axis_.at(each.tune_loss), is_best ? 6 : 4.2, is_best ? "mark c1" : "mark c0",
                    title_of(each, report_.unit));
        }
      }
    }
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> out;
    if (!result_.chosen.empty()) {
      out.push_back(mark_entry("fastest within a budget", kBest, 6, "mark c1"));
      out.push_back(drawn_entry("chosen, and up to where its loss may reach", [](Svg& svg) {
        svg.line(11, 0, 11, 10, "axis");
        svg.circle(11, 9, 4.2, "mark c0", {});
      }));
    }
    out.push_back(mark_entry("measured, keeps a budget", Mark::kCircle, 3.2, "trial met"));
    out.push_back(mark_entry("measured, keeps none", Mark::kCross, 2.6, "trial missed"));
    out.push_back(mark_entry("exact network", kExact, 5, "mark c3"));
    return out;
  }

  static constexpr Mark kBest = Mark::kSquare;
  static constexpr Mark kExact = Mark::kDiamond;
  const ApproxReport& report_;
  const ApproxResult& result_;
  Range x_;
  Range y_;
  Axis x_axis_;
  Axis y_axis_;
  Svg svg_ = Svg::elements();
  std::set<std::size_t> best_;  // of a budget, positions among the chosen
};

// Types of knobs, each with the series of its place; others come last.
constexpr std::array<std::string_view, 4> kTypes{"f32", "bf16", "i8", "f16"};

std::size_t knob_series(std::string_view knob) {
  const auto* const found = std::find(kTypes.begin(), kTypes.end(), knob.substr(0, knob.find('+')));
  return static_cast<std::size_t>(found - kTypes.begin());
}

}  // namespace

std::optional<std::size_t> fastest_within(const ApproxResult& result, double budget) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < result.chosen.size(); ++i) {
    const ApproxConfig& each = result.chosen[i];
    if (each.budget <= budget && (!best || each.speedup > result.chosen[*best].speedup)) {
      best = i;
    }
  }
  return best;
}

Figure loss_by_speedup_plot(const ApproxReport& report) { return LossBySpeedup(report).draw(); }

Figure predicted_loss_plot(const ApproxReport& report) {
  std::vector<Pair> pairs;
  for (const ApproxConfig* each : recommended(report.result)) {
    pairs.push_back({.x = each->tune_loss,
                     .y = each->predicted_loss,
                     .title = concat("measured ", number_text(each->tune_loss, 2), ", predicted ",
                                     number_text(each->predicted_loss, 2), " ", report.unit)});
  }
  return pair_plot(
      pairs,
      {.name = "predicted-loss",
       .title = "Predicted and measured losses",
       .note = "Networks that the models recommended, as predicted before they were measured.",
       .legend = {mark_entry("a network", Mark::kCircle, 3.2, "trial met")}},
      concat("measured loss, ", report.unit), concat("predicted loss, ", report.unit), "trial met");
}

Figure predicted_time_plot(const ApproxReport& report) {
  const std::vector<const ApproxConfig*> networks = recommended(report.result);
  double most = 0;
  for (const ApproxConfig* each : networks) {
    most = std::max(most, each->time_ns);
  }
  const bool in_ms = most >= 1e6;
  const double unit = in_ms ? 1e6 : 1e3;
  std::vector<Pair> pairs;
  for (const ApproxConfig* each : networks) {
    pairs.push_back({.x = each->time_ns / unit,
                     .y = each->predicted_ns / unit,
                     .title = concat("measured ", time_text(each->time_ns), ", predicted ",
                                     time_text(each->predicted_ns))});
  }
  return pair_plot(
      pairs,
      {.name = "predicted-time",
       .title = "Predicted and measured times of a call",
       .note = "Networks that the models recommended, as predicted before they were measured.",
       .legend = {mark_entry("a network", Mark::kCircle, 3.2, "trial met")}},
      in_ms ? "measured time, ms" : "measured time, us",
      in_ms ? "predicted time, ms" : "predicted time, us", "trial met");
}

Figure test_loss_plot(const ApproxReport& report) {
  std::vector<Pair> pairs;
  for (const ApproxConfig& each : report.result.chosen) {
    if (std::isfinite(each.test_loss)) {
      pairs.push_back({.x = each.tune_loss,
                       .y = each.test_loss,
                       .y_high = each.loss_high,
                       .title = title_of(each, report.unit)});
    }
  }
  return pair_plot(pairs,
                   {.name = "test-loss",
                    .title = "Losses on tuning and on test images",
                    .note = "Nothing is chosen by test images.",
                    .legend = {drawn_entry("a chosen network, and up to where its loss may reach",
                                           [](Svg& svg) {
                                             svg.line(11, 0, 11, 10, "axis");
                                             svg.circle(11, 9, 4.6, "mark c0", {});
                                           })}},
                   concat("loss on tuning images, ", report.unit),
                   concat("loss on test images, ", report.unit), "mark c0");
}

Figure sensitivity_plot(const ApproxReport& report) {
  Range saved{0, 1e-3};
  Range losses{0, 1e-3};
  struct Knob {
    Place at;
    std::size_t series;
    std::string title;
  };
  std::vector<Knob> marks;
  std::set<std::size_t> present;
  for (const approx::LayerSensitivity& layer : report.result.layers) {
    for (std::size_t k = 1; k < layer.knobs.size(); ++k) {
      const approx::KnobSensitivity& knob = layer.knobs[k];
      const double share = 100 * (layer.knobs[0].ns - knob.ns) / report.result.exact.time_ns;
      if (!std::isfinite(share)) {
        continue;
      }
      saved = {std::min(saved.low, share), std::max(saved.high, share)};
      losses = {std::min(losses.low, knob.loss), std::max(losses.high, knob.loss)};
      marks.push_back(
          {{share, knob.loss},
           knob_series(knob.knob),
           concat(layer.layer, "=", knob.knob, "\nloss ", number_text(knob.loss, 2), " ",
                  report.unit, ", ", time_text(layer.knobs[0].ns), " to ", time_text(knob.ns))});
      present.insert(marks.back().series);
    }
  }
  if (marks.empty()) {
    return {};
  }
  // A knob that ruins the network must not hide the others.
  losses.high = std::min(losses.high, 3 * kShownLosses * std::max(largest_budget(report), 0.5));
  const Range x_range = padded(saved.low, saved.high);
  const Range y_range = padded(losses.low, losses.high);
  const Axis x = kApproxPanel.horizontal(x_range, false);
  const Axis y = kApproxPanel.vertical(y_range, false);
  Svg svg = Svg::elements();
  formats::draw_frame(svg, kApproxPanel, x, y, formats::linear_ticks(x_range, kAxisTicks, " %"),
                      formats::linear_ticks(y_range, kAxisTicks),
                      "time saved, of the whole network's", concat("loss, ", report.unit));
  for (const Knob& mark : marks) {
    svg.mark(series_mark(mark.series), x.at(mark.at.first), y.at(mark.at.second), 4,
             concat("mark c", mark.series), mark.title);
  }
  std::vector<LegendEntry> legend;
  for (const std::size_t series : present) {
    legend.push_back(mark_entry(series < kTypes.size() ? std::string(kTypes[series]) : "other",
                                series_mark(series), 4, concat("mark c", series)));
  }
  return plot_figure("layers", "Knobs of single layers by the time that they save and the loss",
                     "Every mark is a knob of one layer with all other layers exact.",
                     std::move(svg), std::move(legend));
}

}  // namespace foretune::report_internal
