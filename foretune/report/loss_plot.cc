// Draws losses over epochs, one line per training: inside the report and as a file of its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/plots.h"

namespace foretune::report_internal {
namespace {

// One of the two losses of every training.
struct Kind {
  std::string_view name;
  std::size_t series;
  double TrainingCurve::Point::* loss;
};
constexpr std::array kKinds{Kind{"training", 1, &TrainingCurve::Point::train_loss},
                            Kind{"stopping problems", 0, &TrainingCurve::Point::stop_loss}};

class LossPlot {
 public:
  LossPlot(const TrainingCurves& trained, double width, double height)
      : trained_(trained),
        panel_{.left = 58, .top = 12, .right = width - 12, .bottom = height - 46} {
    for (const TrainingCurve& curve : trained.curves) {
      has_folds_ = has_folds_ || !curve.is_whole;
      has_stop_ = has_stop_ || !std::isnan(curve.best.stop_loss);
      for (const TrainingCurve::Point& point : curve.points) {
        for (const Kind& kind : kKinds) {
          if (const double loss = point.*kind.loss; !std::isnan(loss)) {
            losses_ = {std::min(losses_.low, loss), std::max(losses_.high, loss)};
          }
        }
      }
      last_epoch_ = std::max(last_epoch_, static_cast<double>(curve.epochs));
    }
    // On a logarithmic scale a loss near 0 would leave no space for the others.
    constexpr double kSmallest = 1e-12;
    is_log_ = losses_.low > kSmallest && losses_.high > 10 * losses_.low;
  }

  std::string draw() const {
    Svg svg = Svg::elements();
    const Range range = range_of_losses();
    const Range epochs{last_epoch_ > 1 ? 1.0 : 0.0, last_epoch_};
    const Axis x = panel_.horizontal(epochs, false);
    const Axis y = panel_.vertical(range, is_log_);
    formats::draw_frame(svg, panel_, x, y, formats::whole_ticks(epochs, 8), loss_ticks(range),
                        "epoch",
                        trained_.loss.empty() ? "loss" : concat("loss (", trained_.loss, ")"));
    // The networks of the model itself are on top.
    for (const bool is_whole : {false, true}) {
      for (const TrainingCurve& curve : trained_.curves) {
        if (curve.is_whole == is_whole) {
          draw_curve(svg, curve, x, y);
        }
      }
    }
    return svg.finish();
  }

  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> out;
    for (const Kind& kind : kKinds) {
      if (has_stop_ || kind.loss == &TrainingCurve::Point::train_loss) {
        out.push_back(line_entry(std::string(kind.name), style_of(kind, true)));
      }
    }
    const Kind& marked = kKinds[has_stop_ ? 1 : 0];
    out.push_back(
        mark_entry("best epoch", series_mark(marked.series), 4.5, concat("mark c", marked.series)));
    if (has_folds_) {
      out.push_back(line_entry("folds", "series thin"));
      out.push_back(line_entry("all data", "series whole"));
    }
    return out;
  }

 private:
  [[nodiscard]] Range range_of_losses() const {
    if (is_log_) {
      return formats::log_range(losses_.low, losses_.high);
    }
    // Equal losses get a range as well.
    const double size = std::max({std::fabs(losses_.low), std::fabs(losses_.high), 1e-6});
    const double width = losses_.high - losses_.low;
    const double margin = width > 1e-6 * size ? 0.05 * width : 0.1 * size;
    return {losses_.low - margin, losses_.high + margin};
  }

  [[nodiscard]] std::vector<Tick> loss_ticks(const Range& range) const {
    return is_log_ ? formats::log_ticks(range, [](double loss) { return significant(loss, 3); })
                   : formats::linear_ticks(range, 7);
  }

  static std::string style_of(const Kind& kind, bool is_whole) {
    return concat("series ", series_class(kind.series), is_whole ? " whole" : " thin");
  }

  void draw_curve(Svg& svg, const TrainingCurve& curve, const Axis& x, const Axis& y) const {
    const std::string title = concat(curve.name, ": ", training_text(curve));
    const Kind* marked = nullptr;
    for (const Kind& kind : kKinds) {
      std::vector<std::pair<double, double>> places;
      for (const TrainingCurve::Point& point : curve.points) {
        if (!std::isnan(point.*kind.loss)) {
          places.emplace_back(x.at(point.epoch), y.at(point.*kind.loss));
        }
      }
      if (!places.empty()) {
        svg.polyline(places, style_of(kind, curve.is_whole), title);
      }
      // The last existing kind determined the best epoch.
      marked = std::isnan(curve.best.*kind.loss) ? marked : &kind;
    }
    if (marked != nullptr) {
      svg.mark(series_mark(marked->series), x.at(curve.best.epoch), y.at(curve.best.*marked->loss),
               curve.is_whole ? 4.5 : 3, concat("mark c", marked->series), title);
    }
  }

  const TrainingCurves& trained_;
  Panel panel_;
  Range losses_{HUGE_VAL, -HUGE_VAL};
  double last_epoch_ = 1;
  bool is_log_ = false;
  bool has_folds_ = false;
  bool has_stop_ = false;
};

}  // namespace

Figure loss_plot(const TrainingCurves& trained, double width, double height) {
  if (trained.curves.empty()) {
    return {};
  }
  const LossPlot plot(trained, width, height);
  return {.name = "loss",
          .title = "Losses of the networks over the epochs of their training",
          .note =
              "The weights of the best epoch were kept. Where the loss on the stopping problems "
              "rises again, the network begins to learn by heart.",
          .width = width,
          .height = height,
          .drawing = plot.draw(),
          .legend = plot.legend()};
}

}  // namespace foretune::report_internal

namespace foretune {

std::string loss_svg(const TrainingCurves& trained, std::string_view source) {
  constexpr double kWidth = 640;
  constexpr double kHeight = 380;
  return report_internal::figure_svg(report_internal::loss_plot(trained, kWidth, kHeight), source);
}

std::string training_text(const TrainingCurve& curve) {
  std::string out = concat(count_of(curve.epochs, "epoch"), ", best ", curve.best.epoch,
                           ": training loss ", report_internal::loss_text(curve.best.train_loss));
  if (!std::isnan(curve.best.stop_loss)) {
    out += concat(", stopping loss ", report_internal::loss_text(curve.best.stop_loss));
  }
  return out;
}

}  // namespace foretune
