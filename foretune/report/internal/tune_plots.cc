#include "foretune/report/internal/tune_plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/metrics/pareto.h"
#include "foretune/report/internal/metric_scale.h"
#include "foretune/report/internal/plots.h"
#include "foretune/report/tune_report.h"

namespace foretune::report_internal {
namespace {

using Place = std::pair<double, double>;

constexpr Panel kTunePanel{.left = 74, .top = 12, .right = 468, .bottom = 284};
// Marks with tooltips; of more, clouds without.
constexpr std::size_t kMaxTitled = 600;
constexpr std::size_t kMaxPairs = 10;
constexpr double kTagLetters = 12;
constexpr std::size_t kMaxNameBytes = 40;

// One axis: a metric, or the place in an order.
struct TuneAxis {
  const MetricInfo* metric = nullptr;
  std::string name;
  Axis axis;
  std::vector<Tick> ticks;
  std::optional<MetricScale> scale;
};

struct Tag {
  Place at;
  std::string_view text;
};

std::string axis_name(const Judge& judge, const MetricInfo& info) {
  const std::vector<std::string>& targets = judge.objective().targets;
  std::string out = info.name.size() <= kMaxNameBytes
                        ? info.name
                        : concat(info.name.substr(0, kMaxNameBytes - 3), "...");
  if (std::find(targets.begin(), targets.end(), info.name) != targets.end()) {
    out += is_maximised(judge, info) ? ", more is better" : ", less is better";
  }
  return out;
}

// Marks of the configs that were compared once more.
constexpr Mark kChosen = Mark::kSquare;
constexpr Mark kDefault = Mark::kDiamond;

std::vector<LegendEntry> tune_legend(const TuneResult& result, const TuneAnalysis& analysis) {
  const Objective& objective = result.judge->objective();
  std::vector<LegendEntry> out;
  const auto steps = [](std::string_view style) {
    return [style](Svg& svg) {
      svg.polyline({{0, 2}, {11, 2}, {11, 12}, {22, 12}}, style, {});
      if (style == "step") {
        svg.mark(Mark::kUp, 11, 11, 3.6, "trial front", {});
      }
    };
  };
  if (objective.targets.size() > 2) {
    out.push_back(mark_entry("the front", Mark::kUp, 3.6, "trial front"));
    out.push_back(drawn_entry("front of two targets alone", steps("step alone")));
  } else if (objective.is_pareto()) {
    out.push_back(drawn_entry("the front", steps("step")));
  }
  if (chosen_finalist(result, analysis) < result.finalists.size()) {
    out.push_back(mark_entry(analysis.knee ? "its knee" : "the best", kChosen, 6, "mark c1"));
  }
  out.push_back(mark_entry("compared once more", Mark::kCircle, 4.6, "mark c0"));
  if (result.by_default) {
    out.push_back(mark_entry("default config", kDefault, 5, "mark c3"));
  }
  if (analysis.met > 0) {
    out.push_back(mark_entry(objective.bounds.empty() ? "measured" : "meets the bounds",
                             Mark::kCircle, 3.2, "trial met"));
  }
  if (analysis.kept > 0) {
    out.push_back(mark_entry("kept", Mark::kDown, 3.2, "trial kept"));
  }
  if (analysis.missed > 0) {
    out.push_back(mark_entry(objective.bounds.empty() ? "lacks a value" : "misses a bound",
                             Mark::kCross, 2.6, "trial missed"));
  }
  if (!objective.bounds.empty()) {
    out.push_back(drawn_entry("forbidden by a bound", [](Svg& svg) {
      svg.rect(4, 0, 16, 14, "forbidden", {});
      svg.line(4, 0, 4, 14, "limit");
    }));
  }
  return out;
}

class TunePlot {
 public:
  // `y` and, unless values are drawn in their order, `x` are of the judge.
  TunePlot(const TuneResult& result, const TuneAnalysis& analysis, const ConfigSchema& schema,
           const MetricInfo* x, const MetricInfo& y)
      : result_(result),
        judge_(*result.judge),
        analysis_(analysis),
        schema_(schema),
        x_(x != nullptr ? metric_axis(*x, kTunePanel.left, kTunePanel.right) : order_axis(y)),
        y_(metric_axis(y, kTunePanel.bottom, kTunePanel.top)),
        name_(x != nullptr ? concat(x->name, "-", y.name) : y.name),
        title_(x != nullptr ? concat("Measured configs by ", x->name, " and ", y.name)
                            : concat("Measured configs in the order of ", y.name)) {}

  Figure draw() {
    draw_limits(x_, true);
    draw_limits(y_, false);
    formats::draw_frame(svg_, kTunePanel, x_.axis, y_.axis, x_.ticks, y_.ticks, x_.name, y_.name);
    draw_gaps();
    draw_trials();
    draw_front();
    draw_compared();
    draw_tags();
    return plot_figure(name_, title_, {}, std::move(svg_), tune_legend(result_, analysis_));
  }

 private:
  TuneAxis metric_axis(const MetricInfo& info, double from, double to) const {
    std::vector<double> values;
    const auto add = [&](const TunedConfig& tuned) {
      values.push_back(metric_value(tuned.values, info.name));
    };
    std::for_each(result_.measured.begin(), result_.measured.end(), add);
    std::for_each(result_.finalists.begin(), result_.finalists.end(), add);
    if (result_.by_default) {
      add(*result_.by_default);
    }
    std::vector<double> limits;
    for (std::size_t i = 0; i < judge_.objective().bounds.size(); ++i) {
      if (judge_.objective().bounds[i].metric == info.name) {
        limits.push_back(judge_.limit(i));
        limits.push_back(judge_.keep_limit(i));
      }
    }
    MetricScale scale(values, limits, info.unit);
    return {&info, axis_name(judge_, info), scale.axis(from, to), scale.ticks(), scale};
  }

  // Sorts by the values of `info`, and finds the place of what was not measured so.
  TuneAxis order_axis(const MetricInfo& info) {
    const bool more = is_maximised(judge_, info);
    for (const TunedConfig& tuned : result_.measured) {
      if (const double value = metric_value(tuned.values, info.name); std::isfinite(value)) {
        order_.push_back(more ? -value : value);
      }
    }
    std::sort(order_.begin(), order_.end());
    const formats::Range range{0, static_cast<double>(order_.size()) + 1};
    return {nullptr, "configs measured, the best first",
            Axis(range, false, kTunePanel.left, kTunePanel.right),
            formats::whole_ticks({1, range.high - 1}, 6), std::nullopt};
  }

  [[nodiscard]] double rank_of(double value) const {
    const double oriented = is_maximised(judge_, *y_.metric) ? -value : value;
    return static_cast<double>(std::lower_bound(order_.begin(), order_.end(), oriented) -
                               order_.begin());
  }

  // Nothing for a config that lacks a value.
  [[nodiscard]] std::optional<Place> place_of(const TunedConfig& tuned) const {
    const double y = metric_value(tuned.values, y_.metric->name);
    const double x =
        x_.metric != nullptr ? metric_value(tuned.values, x_.metric->name) : rank_of(y) + 1;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      return std::nullopt;
    }
    return Place{x_.axis.at(x), y_.axis.at(y)};
  }

  [[nodiscard]] std::string title_of(const TunedConfig& tuned) const {
    return concat(values_text(judge_, tuned, false), "\n", shown_text(schema_, tuned.config));
  }

  // The forbidden side of each bound, the looser bound within it.
  void draw_limits(const TuneAxis& axis, bool is_x) {
    const std::vector<MetricBound>& bounds = judge_.objective().bounds;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (axis.metric == nullptr || bounds[i].metric != axis.metric->name ||
          !axis.scale->shows(judge_.limit(i))) {
        continue;
      }
      const double limit = axis.axis.at(judge_.limit(i));
      const double keep = axis.axis.at(judge_.keep_limit(i));
      const bool is_right = bounds[i].is_upper == is_x;  // or below
      const double end = is_x ? (is_right ? kTunePanel.right : kTunePanel.left)
                              : (is_right ? kTunePanel.bottom : kTunePanel.top);
      shade(limit, keep, is_x, "forbidden loose");
      shade(keep, end, is_x, "forbidden");
      if (bounds[i].keep) {
        rule(keep, is_x, "limit loose");
      }
      rule(limit, is_x, "limit");
      limit_notes_.push_back({concat(bounds[i].is_upper ? "<= " : ">= ",
                                     metric_text(judge_.limit(i), axis.metric->unit)),
                              limit, is_x, is_right});
    }
  }

  void shade(double from, double to, bool is_x, std::string_view style) {
    const double low = std::min(from, to);
    const double size = std::fabs(to - from);
    if (size > 0 && is_x) {
      svg_.rect(low, kTunePanel.top, size, kTunePanel.bottom - kTunePanel.top, style, {});
    } else if (size > 0) {
      svg_.rect(kTunePanel.left, low, kTunePanel.right - kTunePanel.left, size, style, {});
    }
  }

  void rule(double at, bool is_x, std::string_view style) {
    if (is_x) {
      svg_.line(at, kTunePanel.top, at, kTunePanel.bottom, style);
    } else {
      svg_.line(kTunePanel.left, at, kTunePanel.right, at, style);
    }
  }

  // Where an axis leaps to zero: dashes across the panel, and two strokes on the axis.
  void draw_gaps() {
    if (const std::optional<double> gap = x_.axis.gap()) {
      rule(*gap, true, "guide");
      for (const double shift : {-2.5, 2.5}) {
        svg_.line(*gap + shift - 2, kTunePanel.bottom + 4, *gap + shift + 2, kTunePanel.bottom - 4,
                  "break");
      }
    }
    if (const std::optional<double> gap = y_.axis.gap()) {
      rule(*gap, false, "guide");
      for (const double shift : {-2.5, 2.5}) {
        svg_.line(kTunePanel.left - 4, *gap + shift + 2, kTunePanel.left + 4, *gap + shift - 2,
                  "break");
      }
    }
  }

  void draw_trials() {
    struct Group {
      std::string_view style;
      double radius;
      Mark shape = Mark::kCircle;
      std::vector<std::pair<Place, const TunedConfig*>> marks = {};
    };
    // Those that matter most lie on top.
    std::array<Group, 3> groups{Group{"missed", 2.6, Mark::kCross}, Group{"kept", 3.2, Mark::kDown},
                                Group{"met", 3.2}};
    for (const TunedConfig& tuned : result_.measured) {
      if (const std::optional<Place> place = place_of(tuned)) {
        const Judgement& judgement = tuned.judgement;
        groups[judgement.is_feasible() ? 2
               : judgement.is_kept()   ? 1
                                       : 0]
            .marks.emplace_back(*place, &tuned);
        occupied_.push_back(*place);
      }
    }
    for (const Group& group : groups) {
      std::vector<Place> places;
      for (const auto& [place, tuned] : group.marks) {
        if (group.marks.size() > kMaxTitled) {
          places.push_back(place);
        } else {
          svg_.mark(group.shape, place.first, place.second, group.radius,
                    concat("trial ", group.style), title_of(*tuned));
        }
      }
      if (!places.empty()) {
        svg_.cloud(places, concat("cloud ", group.style), group.shape);
      }
    }
  }

  // Where there are more targets than the two of this plot, its steps are the front of the two
  // alone.
  void draw_front() {
    const std::size_t targets = judge_.objective().targets.size();
    const std::optional<std::size_t> x = target_of(x_);
    const std::optional<std::size_t> y = target_of(y_);
    if (!judge_.objective().is_pareto()) {
      return;
    }
    if (x && y) {
      std::vector<double> pairs;
      std::vector<const TunedConfig*> configs;
      for (const TunedConfig& tuned : result_.measured) {
        if (tuned.judgement.is_feasible()) {
          pairs.push_back(tuned.judgement.targets[*x]);
          pairs.push_back(tuned.judgement.targets[*y]);
          configs.push_back(&tuned);
        }
      }
      const PointSet points{pairs, 2};
      std::vector<std::size_t> front = pareto_front(points);
      std::sort(front.begin(), front.end(),
                [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
      draw_steps(front, configs, targets > 2 ? "step alone" : "step");
    }
    for (const std::size_t index : analysis_.front) {
      const TunedConfig& tuned = result_.measured[index];
      if (const std::optional<Place> place = place_of(tuned)) {
        svg_.mark(Mark::kUp, place->first, place->second, 3.6, "trial front", title_of(tuned));
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> target_of(const TuneAxis& axis) const {
    const std::vector<std::string>& targets = judge_.objective().targets;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (axis.metric != nullptr && targets[i] == axis.metric->name) {
        return i;
      }
    }
    return std::nullopt;
  }

  // The border of what the front dominates: from each point to the worse side of the first target
  // as far as the next point, and at both ends to the panel's border.
  void draw_steps(const std::vector<std::size_t>& front,
                  const std::vector<const TunedConfig*>& configs, std::string_view style) {
    if (front.empty()) {
      return;
    }
    std::vector<Place> corners;
    for (const std::size_t index : front) {
      const std::optional<Place> place = place_of(*configs[index]);
      if (!place) {
        return;
      }
      const double worst_y = is_maximised(judge_, *y_.metric) ? kTunePanel.bottom : kTunePanel.top;
      corners.emplace_back(place->first, corners.empty() ? worst_y : corners.back().second);
      corners.push_back(*place);
    }
    corners.emplace_back(is_maximised(judge_, *x_.metric) ? kTunePanel.left : kTunePanel.right,
                         corners.back().second);
    svg_.polyline(corners, style, {});
    // Names had better not hide the line.
    constexpr double kStride = 6;
    for (std::size_t i = 1; i < corners.size(); ++i) {
      const double dx = corners[i].first - corners[i - 1].first;
      const double dy = corners[i].second - corners[i - 1].second;
      const int steps = static_cast<int>((std::fabs(dx) + std::fabs(dy)) / kStride) + 1;
      for (int step = 0; step < steps; ++step) {
        occupied_.emplace_back(corners[i - 1].first + dx * step / steps,
                               corners[i - 1].second + dy * step / steps);
      }
    }
  }

  void draw_compared() {
    const std::size_t chosen = chosen_finalist(result_, analysis_);
    // The chosen one last and so on top.
    for (const bool is_chosen : {false, true}) {
      for (std::size_t i = 0; i < result_.finalists.size(); ++i) {
        const TunedConfig& tuned = result_.finalists[i];
        const std::optional<Place> place = place_of(tuned);
        if (!place || (i == chosen) != is_chosen) {
          continue;
        }
        occupied_.insert(occupied_.end(), 3, *place);
        svg_.mark(is_chosen ? kChosen : Mark::kCircle, place->first, place->second,
                  is_chosen ? 6.5 : 4.6, is_chosen ? "mark c1" : "mark c0",
                  concat(i + 1, ": ", title_of(tuned)));
        if (is_chosen) {
          tags_.push_back({*place, analysis_.knee ? "knee" : "best"});
        }
      }
      if (!is_chosen && result_.by_default) {
        if (const std::optional<Place> place = place_of(*result_.by_default)) {
          occupied_.insert(occupied_.end(), 3, *place);
          svg_.mark(kDefault, place->first, place->second, 5, "mark c3",
                    concat("default config: ", title_of(*result_.by_default)));
          tags_.push_back({*place, "default"});
        }
      }
    }
  }

  struct Box {
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;
    [[nodiscard]] bool has(const Place& place) const {
      return place.first > left && place.first < right && place.second > top &&
             place.second < bottom;
    }
    [[nodiscard]] bool meets(const Box& other) const {
      return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
  };

  struct TagSpot {
    double dx;
    double dy;
    Anchor anchor;
  };

  static Box box_of(const TagSpot& spot, const Tag& tag) {
    const double width = formats::text_width(tag.text, kTagLetters);
    const double x = tag.at.first + spot.dx;
    const double y = tag.at.second + spot.dy;
    const double left = spot.anchor == Anchor::kStart ? x
                        : spot.anchor == Anchor::kEnd ? x - width
                                                      : x - width / 2;
    return {left, y - 11, left + width, y + 3};
  }

  // Beside their marks, where they hide least.
  void draw_tags() {
    // Those of vertical lines first: they have one place only.
    for (const bool is_x : {true, false}) {
      for (const LimitNote& note : limit_notes_) {
        if (note.is_x == is_x) {
          draw_limit_note(note);
        }
      }
    }
    static constexpr std::array kSpots{
        TagSpot{10, 4, Anchor::kStart},   TagSpot{-10, 4, Anchor::kEnd},
        TagSpot{8, -8, Anchor::kStart},   TagSpot{-8, 16, Anchor::kEnd},
        TagSpot{-8, -8, Anchor::kEnd},    TagSpot{8, 16, Anchor::kStart},
        TagSpot{0, -12, Anchor::kMiddle}, TagSpot{0, 22, Anchor::kMiddle},
        TagSpot{14, -20, Anchor::kStart}, TagSpot{14, 26, Anchor::kStart}};
    for (const Tag& tag : tags_) {
      const TagSpot* best = nullptr;
      double least = HUGE_VAL;
      for (const TagSpot& spot : kSpots) {
        const Box box = box_of(spot, tag);
        double cost = 0;
        cost += box.left < kTunePanel.left || box.right > kPlotWidth ? 1e6 : 0;
        cost += box.top < 0 || box.bottom > kTunePanel.bottom ? 1e6 : 0;
        for (const Box& other : taken_) {
          cost += box.meets(other) ? 1e3 : 0;
        }
        cost += static_cast<double>(std::count_if(occupied_.begin(), occupied_.end(),
                                                  [&](const Place& at) { return box.has(at); }));
        if (cost < least) {
          least = cost;
          best = &spot;
        }
      }
      taken_.push_back(box_of(*best, tag));
      svg_.text(tag.at.first + best->dx, tag.at.second + best->dy, best->anchor, "tag", tag.text);
    }
  }

  struct LimitNote {
    std::string text;
    double at = 0;
    bool is_x = false;
    bool is_right = false;  // the forbidden side is to the right of the line, or below it
  };

  // On the forbidden side, if there is room.
  void draw_limit_note(const LimitNote& note) {
    const double width = formats::text_width(note.text, kTagLetters);
    double x = kTunePanel.left + 6;
    double y = kTunePanel.top + 14;
    Anchor anchor = Anchor::kStart;
    if (note.is_x) {
      const bool has_room = note.is_right ? kTunePanel.right - note.at > width + 6
                                          : note.at - kTunePanel.left > width + 6;
      anchor = note.is_right == has_room ? Anchor::kStart : Anchor::kEnd;
      x = note.at + (anchor == Anchor::kStart ? 5 : -5);
    } else {
      const double room = note.is_right ? kTunePanel.bottom - note.at : note.at - kTunePanel.top;
      y = note.at + (note.is_right == (room > 20) ? 14 : -6);
      // At the end where it hides less.
      const auto hidden = [&](double left) {
        const Box box{left, y - 11, left + width, y + 3};
        const auto is_in = [&](const Place& at) { return box.has(at); };
        const auto meets = [&](const Box& other) { return box.meets(other); };
        return std::count_if(occupied_.begin(), occupied_.end(), is_in) +
               1000 * std::count_if(taken_.begin(), taken_.end(), meets);
      };
      const double end = kTunePanel.right - 6;
      if (hidden(end - width) < hidden(x)) {
        anchor = Anchor::kEnd;
        x = end;
      }
    }
    const double left = anchor == Anchor::kStart ? x : x - width;
    taken_.push_back({left, y - 11, left + width, y + 3});
    svg_.text(x, y, anchor, "small tag", note.text);
  }

  const TuneResult& result_;
  const Judge& judge_;
  const TuneAnalysis& analysis_;
  const ConfigSchema& schema_;
  std::vector<double> order_;  // before x_, which fills it
  TuneAxis x_;
  TuneAxis y_;
  std::string name_;
  std::string title_;
  Svg svg_ = Svg::elements();
  std::vector<Place> occupied_;
  std::vector<Tag> tags_;
  std::vector<LimitNote> limit_notes_;
  std::vector<Box> taken_;
};

}  // namespace

std::vector<Figure> tune_plots(const TuneResult& result, const TuneAnalysis& analysis,
                               const ConfigSchema& schema) {
  const Judge& judge = *result.judge;
  const std::span<const MetricInfo> metrics = judge.metrics();
  const std::size_t targets = judge.objective().targets.size();
  std::vector<Figure> out;
  for (std::size_t y = 1; y < metrics.size(); ++y) {
    for (std::size_t x = 0; x < (y < targets ? y : 1); ++x) {
      if (out.size() < kMaxPairs) {
        out.push_back(TunePlot(result, analysis, schema, &metrics[x], metrics[y]).draw());
      }
    }
  }
  if (out.empty()) {
    out.push_back(TunePlot(result, analysis, schema, nullptr, metrics[0]).draw());
  }
  return out;
}

}  // namespace foretune::report_internal
