#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/formats/svg.h"
#include "foretune/problem/problem.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/page.h"
#include "foretune/report/internal/plots.h"

namespace foretune {
namespace {

using formats::html_escaped;
using report_internal::config_html;
using report_internal::efficiency_class;
using report_internal::Figure;
using report_internal::figure_html;
using report_internal::gain_text;
using report_internal::Headline;
using report_internal::interval_text;
using report_internal::loss_text;
using report_internal::number_text;
using report_internal::percent_text;
using report_internal::time_text;

std::string css_percent(double share) {
  return concat(fixed(100 * std::clamp(share, 0.0, 1.0), 2), "%");
}

// Shares of the widths of bars in tables.
class Scale {
 public:
  Scale(double low, double high) : low_(low), high_(high) {}
  [[nodiscard]] double at(double value) const { return (value - low_) / (high_ - low_); }
  [[nodiscard]] std::string text() const {
    return concat(fixed(100 * low_, 0), " % to ", fixed(100 * high_, 0), " %");
  }

 private:
  double low_;
  double high_;
};

class HtmlReport : private report_internal::Page {
 public:
  HtmlReport(const Evaluation& evaluation, const std::string& title, std::string_view source)
      : Page(title), evaluation_(evaluation), source_(source) {}

  std::string write() {
    add("<p class=\"lead\">", html_escaped(report_internal::summary_text(evaluation_)), "</p>\n");
    warnings();
    tiles();
    comparison();
    plots();
    slices();
    worst();
    facts();
    return finish(source_);
  }

 private:
  void warnings() {
    if (evaluation_.warnings.empty()) {
      return;
    }
    add("<div class=\"warnings\"><ul>");
    for (const std::string& warning : evaluation_.warnings) {
      add("<li>", html_escaped(warning), "</li>");
    }
    add("</ul></div>\n");
  }

  void tiles() {
    const PickerResult& model = evaluation_.model;
    add("<div class=\"tiles\">\n");
    bool first = true;
    for (const Headline& line : report_internal::headlines(evaluation_)) {
      add("<div class=\"tile", first ? " first" : "", "\" title=\"", html_escaped(line.explanation),
          "\"><div class=\"what\">", first ? "mean efficiency" : line.name,
          "</div><div class=\"value\">", percent_text(line.interval.value),
          "<small> %</small></div><div class=\"range\">", interval_text(line.interval),
          "</div></div>\n");
      first = false;
    }
    add("</div>\n<div class=\"strip\"><span>tied with the best: <b>", percent_text(model.top1_hit),
        " %</b> of first picks, <b>", percent_text(model.top3_hit), " %</b> within 3, <b>",
        percent_text(model.top5_hit), " %</b> within 5, <b>", percent_text(model.top10_hit),
        " %</b> within 10</span><span>log time: RMSE <b>", number_text(evaluation_.rmse_log, 3),
        "</b>");
    if (!std::isnan(evaluation_.rmse_log_absolute)) {
      add(" (absolute <b>", number_text(evaluation_.rmse_log_absolute, 3), "</b>)");
    }
    add(", Spearman <b>", number_text(evaluation_.spearman_mean, 3), "</b> in the mean, <b>",
        number_text(evaluation_.spearman_median, 3), "</b> in the median of problems</span>");
    if (!std::isnan(evaluation_.within_stated_error)) {
      add("<span>the model's stated error holds <b>", percent_text(evaluation_.within_stated_error),
          " %</b> of the errors, twice it <b>", percent_text(evaluation_.within_twice_stated_error),
          " %</b> (68.3 and 95.4 where it is right)</span>");
    }
    add("</div>\n");
    const CkMetrics& ck = evaluation_.ck;
    if (ck.problems > 0) {
      add("<div class=\"strip\"><span>by CK Tile's definitions: mean <b>",
          percent_text(ck.mean_efficiency), " %</b>, P10 <b>", percent_text(ck.p10_efficiency),
          " %</b>, NDCG@1 (exact hits) <b>", percent_text(ck.ndcg_at_1()), " %</b>, top 5 <b>",
          percent_text(ck.top_k[2]), " %</b></span><span>R2 of TFLOPS <b>", number_text(ck.r2, 3),
          "</b>, of log time <b>", number_text(ck.r2_log, 3), "</b></span></div>\n");
    }
    if (evaluation_.unmeasured_picks > 0) {
      add("<div class=\"strip\"><span>counting ", count_of(evaluation_.unmeasured_picks, "pick"),
          " that ", word_for(evaluation_.unmeasured_picks, "was", "were"),
          " not measured as 0: mean <b>", percent_text(evaluation_.strict_mean_efficiency),
          " %</b>, P10 <b>", percent_text(evaluation_.strict_p10_efficiency),
          " %</b></span></div>\n");
    }
  }

  void comparison_row(const PickerResult& picker, bool is_model) {
    add("<tr", is_model ? " class=\"model\"" : "", "><td>", html_escaped(picker.name), "</td><td>",
        percent_text(picker.mean_efficiency.value), " <span class=\"soft\">",
        interval_text(picker.mean_efficiency), "</span></td><td>",
        percent_text(picker.median_efficiency.value), "</td><td>",
        percent_text(picker.p10_efficiency.value), "</td><td>",
        percent_text(picker.min_efficiency.value), "</td><td>", percent_text(picker.top1_hit),
        "</td><td>");
    if (!is_model) {
      add(gain_text(picker.model_gain.value), " <span class=\"soft\">",
          std::isfinite(picker.model_gain.low)
              ? concat(gain_text(picker.model_gain.low), " to ", gain_text(picker.model_gain.high))
              : std::string(),
          "</span>");
    }
    add("</td><td>", is_model ? std::string() : number_text(picker.model_speedup, 2), "</td><td>",
        count_text(picker.problems), "</td></tr>\n");
  }

  void comparison() {
    add("<section>\n", figure_html(report_internal::picks_plot(evaluation_), source_),
        "</section>\n<section>\n<h2>Beside other ways of picking, in numbers</h2>\n"
        "<p class=\"hint\">Efficiencies in percent. Gain: what the model adds to the mean on the "
        "same problems, in points; speed: how many times as fast its picks are, geometric "
        "mean.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th>mean</th>"
        "<th>median</th><th>P10</th><th>min</th><th>top 1</th><th>gain</th><th>speed</th>"
        "<th>problems</th></tr></thead>\n<tbody>\n");
    comparison_row(evaluation_.model, true);
    for (const PickerResult& baseline : evaluation_.baselines) {
      comparison_row(baseline, false);
    }
    add("</tbody></table></div>\n");
    std::vector<std::string> notes;
    for (const PickerResult& baseline : evaluation_.baselines) {
      const std::string name = html_escaped(baseline.name);
      if (baseline.replaced > 0) {
        notes.push_back(concat(name, ": the next choice stood in on ",
                               count_of(baseline.replaced, "problem"),
                               " where the first was not measured."));
      }
      if (baseline.failed > 0) {
        notes.push_back(concat(name, ": ", count_of(baseline.failed, "pick"), " failed."));
      }
      if (baseline.bounds > 0) {
        notes.push_back(concat(name, ": ", count_of(baseline.bounds, "pick"),
                               word_for(baseline.bounds, " was", " were"),
                               " stopped early, which makes the efficiency an upper bound."));
      }
      if (baseline.mean_efficiency.value > 1) {
        notes.push_back(
            concat(name, ": above 100 %, for it is faster than every measured config."));
      }
    }
    if (!notes.empty()) {
      add("<p class=\"hint\" style=\"margin:12px 0 0\">", join(notes, " "), "</p>\n");
    }
    add("</section>\n");
  }

  void plot(const Figure& figure) {
    if (!figure.drawing.empty()) {
      add("<section>\n", figure_html(figure, source_), "</section>\n");
    }
  }

  void plots() {
    add("<div class=\"pair\">\n");
    plot(report_internal::distribution_plot(evaluation_));
    plot(report_internal::curve_plot(evaluation_));
    plot(report_internal::portfolio_plot(evaluation_));
    plot(report_internal::map_plot(evaluation_));
    plot(report_internal::duration_plot(evaluation_));
    plot(report_internal::prediction_plot(evaluation_));
    plot(report_internal::loss_plot(evaluation_.trained));
    trainings();
    if (evaluation_.portfolio.empty()) {
      slices();  // where the portfolio's plot would make the pair
    }
    add("</div>\n");
  }

  // Beside the plot of their losses.
  void trainings() {
    if (evaluation_.trained.curves.empty()) {
      return;
    }
    add("<section>\n<h2>Every training</h2>\n<p class=\"hint\">Losses of the best epoch. A fold is "
        "held out: what its network says of it makes the held-out figures. What learned from all "
        "data is in the model.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>"
        "<th>epochs</th><th>best</th><th>training</th><th>stopping</th></tr></thead>\n<tbody>\n");
    for (const TrainingCurve& curve : evaluation_.trained.curves) {
      add("<tr", curve.is_whole ? " class=\"model\"" : "", "><td>", html_escaped(curve.name),
          "</td><td>", count_text(curve.epochs), "</td><td>", count_text(curve.best.epoch),
          "</td><td>", loss_text(curve.best.train_loss), "</td><td>",
          loss_text(curve.best.stop_loss), "</td></tr>\n");
    }
    add("</tbody></table></div>\n</section>\n");
  }

  void slices() {
    if (evaluation_.slices.empty() || slices_written_) {
      return;
    }
    slices_written_ = true;
    double low = 0.9;
    for (const Slice& slice : evaluation_.slices) {
      low = std::min(low, slice.mean_efficiency);
    }
    const Scale scale(std::floor(low * 10 - 1e-9) / 10, 1);
    const bool has_novelty =
        std::any_of(evaluation_.slices.begin(), evaluation_.slices.end(),
                    [](const Slice& slice) { return slice.dimension == "weights"; });
    add("<section>\n<h2>By kind of problem</h2>\n<p class=\"hint\">Mean efficiency of the picks; "
        "bars run from ",
        scale.text(),
        has_novelty ? ". Sizes and weights are new where no problem of the training set has them"
                    : "",
        ".</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th></th><th></th><th>mean</th>"
        "<th>P10</th><th>min</th><th>problems</th></tr></thead>\n<tbody>\n");
    std::string dimension;
    for (const Slice& slice : evaluation_.slices) {
      const bool is_new = slice.dimension != dimension;
      dimension = slice.dimension;
      add("<tr", is_new ? "" : " class=\"plain\"", "><td class=\"dimension\">",
          is_new ? html_escaped(slice.dimension) : std::string(),
          "</td><td style=\"text-align:left\">", html_escaped(slice.value),
          "</td><td class=\"bars\"><div class=\"lane\"><div class=\"bar\" style=\"width:",
          css_percent(scale.at(slice.mean_efficiency)), "\"></div></div></td><td>",
          percent_text(slice.mean_efficiency), "</td><td>", percent_text(slice.p10_efficiency),
          "</td><td>", percent_text(slice.min_efficiency), "</td><td>", count_text(slice.problems),
          "</td></tr>\n");
    }
    add("</tbody></table></div>\n</section>\n");
  }

  void worst() {
    if (evaluation_.worst.empty()) {
      return;
    }
    add("<section>\n<h2>The worst ", evaluation_.worst.size(),
        "</h2>\n<p class=\"hint\">Where the pick was furthest from the best; what differs is "
        "marked.</p>\n");
    for (const WorstCase& entry : evaluation_.worst) {
      add("<div class=\"case\"><div class=\"share ", efficiency_class(entry.efficiency), "\">",
          percent_text(entry.efficiency), " %</div><div><span class=\"problem\">",
          html_escaped(shown_problem(entry.problem)), "</span> <span class=\"soft\">",
          entry.note.empty()
              ? concat("rank ", count_text(entry.rank), " of ", count_text(entry.candidates))
              : html_escaped(entry.note),
          "</span></div>\n<dl><dt>picked</dt><dd class=\"time\">", time_text(entry.pick_ns),
          "</dd><dd class=\"config\">", config_html(entry.pick, entry.best),
          "</dd><dt>best</dt><dd class=\"time\">", time_text(entry.best_ns),
          "</dd><dd class=\"config\">", config_html(entry.best, entry.pick), "</dd></dl></div>\n");
    }
    add("</section>\n");
  }

  void facts() {
    add("<section>\n<h2>What was compared</h2>\n<dl class=\"facts\">\n");
    for (const auto& [name, value] : evaluation_.facts) {
      add("<dt>", html_escaped(name), "</dt><dd>", html_escaped(value), "</dd>\n");
    }
    add("</dl>\n<p class=\"hint\" style=\"margin:16px 0 0\">Intervals are 95 % percentile "
        "bootstrap "
        "intervals over problems. A pick that does not run counts as 0. Top 1 is the share of "
        "problems whose pick is as fast as the best, within the tolerance named above.</p>\n"
        "</section>\n");
  }

  const Evaluation& evaluation_;
  std::string_view source_;
  bool slices_written_ = false;
};

}  // namespace

std::string report_html(const Evaluation& evaluation, const std::string& title,
                        std::string_view source) {
  return HtmlReport(evaluation, title, source).write();
}

std::vector<FigureFile> report_figures(const Evaluation& evaluation, std::string_view source) {
  using namespace report_internal;  // NOLINT(google-build-using-namespace)
  std::vector<FigureFile> out;
  for (const Figure& figure :
       {picks_plot(evaluation), distribution_plot(evaluation), curve_plot(evaluation),
        portfolio_plot(evaluation), map_plot(evaluation), duration_plot(evaluation),
        prediction_plot(evaluation), loss_plot(evaluation.trained)}) {
    add_file(out, figure, source);
  }
  return out;
}

}  // namespace foretune
