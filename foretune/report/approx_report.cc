#include "foretune/report/approx_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/approx_plots.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/page.h"

namespace foretune {
namespace {

using approx::ApproxConfig;
using approx::KnobSensitivity;
using approx::LayerSensitivity;
using approx::ModelJudgement;
using formats::html_escaped;
using report_internal::fastest_within;
using report_internal::number_text;
using report_internal::time_text;

std::string lost_text(double loss) { return number_text(loss, 2); }
std::string speedup_text(double speedup) { return concat(number_text(speedup, 2), "\u00d7"); }

class ApproxPage : private report_internal::Page {
 public:
  explicit ApproxPage(const ApproxReport& report)
      : Page(concat("How ", report.network, " computes less")),
        report_(report),
        result_(report.result) {}

  std::string write() {
    lead();
    outcome();
    predictions();
    chosen();
    layers();
    facts();
    return finish(report_.source);
  }

 private:
  void lead() {
    add("<p class=\"lead\">");
    const auto most = std::max_element(report_.budgets.begin(), report_.budgets.end());
    const auto best = most == report_.budgets.end() ? std::nullopt : fastest_within(result_, *most);
    if (best) {
      const ApproxConfig& fastest = result_.chosen[*best];
      add("Within a loss of ", in_unit(*most), ", the network is <b>",
          speedup_text(fastest.speedup),
          "</b> as fast as computed exactly: ", time_text(fastest.time_ns), " instead of ",
          time_text(result_.exact.time_ns), " for a call.");
    } else {
      add("No faster network keeps the budgets.");
    }
    add("</p>\n");
  }

  void outcome() {
    add("<section>\n<h2>Speed-up and loss</h2>\n<p class=\"hint\">The table has the fastest "
        "network "
        "of each budget and its losses.</p>\n<div class=\"pair tuned\">\n<div>",
        figure(report_internal::loss_by_speedup_plot(report_)), "</div>\n<div>");
    budgets();
    add("</div>\n</div>\n</section>\n");
  }

  void budgets() {
    add("<div class=\"scroll\"><table>\n<thead><tr><th>budget</th><th>speed-up</th><th>time</th>"
        "<th>tuning</th><th>at most</th><th>test</th></tr></thead>\n<tbody>\n");
    for (const double budget : report_.budgets) {
      add("<tr><td>", in_unit(budget), "</td>");
      if (const auto best = fastest_within(result_, budget)) {
        const ApproxConfig& each = result_.chosen[*best];
        add("<td><b>", speedup_text(each.speedup), "</b></td><td>", time_text(each.time_ns),
            "</td>");
        losses(each);
      } else {
        add("<td>none</td><td></td><td></td><td></td><td></td>");
      }
      add("</tr>\n");
    }
    add("<tr><td>exact</td><td>", speedup_text(1), "</td><td>", time_text(result_.exact.time_ns),
        "</td><td></td><td></td><td></td></tr>\n</tbody></table></div>\n<dl class=\"facts\">\n");
    if (std::isfinite(result_.exact.test_quality)) {
      fact("exact, test images",
           concat(number_text(result_.exact.test_quality, 2), " ", report_.unit));
    }
    fact("measured",
         concat(count_of(result_.measured, "network"), " in ", seconds_text(result_.seconds),
                ", of them ", seconds_text(result_.profile_seconds), " for single knobs"));
    add("</dl>\n");
  }

  // On tuning images, at most on others, on test images.
  void losses(const ApproxConfig& each) {
    add("<td>", lost_text(each.tune_loss), "</td><td>", lost_text(each.loss_high), "</td><td",
        each.test_loss > each.budget ? " style=\"color:var(--e0)\"" : "", ">",
        lost_text(each.test_loss), "</td>");
  }

  void predictions() {
    const std::string test = figure(report_internal::test_loss_plot(report_));
    const std::string loss = figure(report_internal::predicted_loss_plot(report_));
    if (loss.empty()) {
      return;
    }
    add("<section>\n<h2>Predicted and measured</h2>\n<div class=\"pair tuned\">\n<div>", loss,
        "</div>\n<div>", figure(report_internal::predicted_time_plot(report_)), "</div>\n</div>\n");
    judgement();
    add("</section>\n");
    if (!test.empty()) {
      add("<section>\n<h2>Tuning and test images</h2>\n<div class=\"pair tuned\">\n<div>", test,
          "</div>\n<div>");
      test_facts();
      add("</div>\n</div>\n</section>\n");
    }
  }

  void judgement() {
    const ModelJudgement& judged = result_.judgement;
    if (judged.networks == 0) {
      return;
    }
    const auto quality = [&](double error, double rank) {
      return concat("off by ", number_text(error, 2), " ", report_.unit,
                    " in the mean, rank "
                    "correlation ",
                    number_text(rank, 3));
    };
    add("<dl class=\"facts\">\n");
    fact("judged by", count_of(judged.networks, "random network"));
    fact("quality", quality(judged.fit_error, judged.fit_spearman));
    fact("P1 alone", quality(judged.p1_error, judged.p1_spearman));
    fact("P2 alone", quality(judged.p2_error, judged.p2_spearman));
    fact("time", concat("off by ", number_text(100 * judged.time_error, 1), " % in the mean"));
    add("</dl>\n");
  }

  void test_facts() {
    std::size_t tested = 0;
    std::size_t within_budget = 0;
    std::size_t within_high = 0;
    double more = 0;
    for (const ApproxConfig& each : result_.chosen) {
      if (std::isfinite(each.test_loss)) {
        ++tested;
        within_budget += each.test_loss <= each.budget ? 1 : 0;
        within_high += each.test_loss <= each.loss_high ? 1 : 0;
        more += each.test_loss - each.tune_loss;
      }
    }
    add("<dl class=\"facts\">\n");
    fact("chosen", count_of(tested, "network"));
    fact("within their budgets", count_text(within_budget));
    fact("within their margins", count_text(within_high));
    fact("loss on test images",
         concat(number_text(std::abs(more) / static_cast<double>(tested), 2), " ", report_.unit,
                more < 0 ? " below" : " above", " that on tuning images in the mean"));
    add("</dl>\n");
  }

  void chosen() {
    if (result_.chosen.empty()) {
      return;
    }
    add("<section>\n<h2>Chosen networks</h2>\n<p class=\"hint\">Timed in turns with the exact "
        "network. Losses are in ",
        unit(),
        "; layers that are not named are exact.</p>\n"
        "<div class=\"scroll\"><table class=\"finalists\">\n<thead><tr><th>speed-up</th>"
        "<th>time</th><th>tuning</th><th>at most</th><th>test</th><th>budget</th>"
        "<th>predicted</th><th class=\"config\">layers</th></tr></thead>\n<tbody>\n");
    for (const ApproxConfig& each : result_.chosen) {
      add("<tr><td>", speedup_text(each.speedup), "</td><td>", time_text(each.time_ns), "</td>");
      losses(each);
      add("<td>", each.budget, "</td><td>",
          each.predicted_ns > 0
              ? concat(lost_text(each.predicted_loss), ", ", time_text(each.predicted_ns))
              : std::string(report_internal::kNoNumber),
          "</td><td class=\"config\">", report_internal::config_html(each.text, each.text),
          "</td></tr>\n");
    }
    add("</tbody></table></div>\n</section>\n");
  }

  void layers() {
    if (result_.layers.empty()) {
      return;
    }
    add("<section>\n<h2>Layers alone</h2>\n<p class=\"hint\">Each knob with all other layers "
        "exact. "
        "Knobs that save nothing, or that another one beats in time and change, are left out. The "
        "time is that of the layer and of what follows it, for a call.</p>\n"
        "<div class=\"pair tuned\">\n<div>",
        figure(report_internal::sensitivity_plot(report_)), "</div>\n<div>");
    cheapest();
    add("</div>\n</div>\n<div class=\"scroll\"><table>\n<thead><tr><th>layer</th>"
        "<th style=\"text-align:left\">kind</th><th style=\"text-align:left\">knob</th>"
        "<th>loss</th><th>time, ms</th><th>saved, ms</th><th>of the layer</th><th></th></tr>"
        "</thead>\n<tbody>\n");
    for (const LayerSensitivity& layer : result_.layers) {
      for (std::size_t k = 0; k < layer.knobs.size(); ++k) {
        knob_row(layer, layer.knobs[k], k == 0);
      }
    }
    add("</tbody></table></div>\n</section>\n");
  }

  void knob_row(const LayerSensitivity& layer, const KnobSensitivity& knob, bool is_exact) {
    const double saved = layer.knobs[0].ns - knob.ns;
    const double share = layer.knobs[0].ns > 0 ? 100 * saved / layer.knobs[0].ns : 0;
    add(is_exact ? "<tr><td>" : "<tr class=\"plain\"><td>",
        is_exact ? html_escaped(layer.layer) : std::string(), "</td><td style=\"text-align:left\">",
        is_exact ? html_escaped(layer.op) : std::string(), "</td><td style=\"text-align:left\">",
        html_escaped(knob.knob), "</td><td>", is_exact ? std::string() : lost_text(knob.loss),
        "</td><td>", number_text(knob.ns / 1e6, 3), "</td>");
    if (is_exact) {
      add("<td></td><td></td><td class=\"bars\"></td></tr>\n");
      return;
    }
    add("<td>", number_text(saved / 1e6, 3), "</td><td>", number_text(share, 0),
        " %</td><td class=\"bars\"><div class=\"lane\"><div class=\"bar\" style=\"width:",
        fixed(std::clamp(share, 0.0, 100.0), 1), "%\"></div></div></td></tr>\n");
  }

  // The layers by what they save within a fifth of the smallest budget, at least 0.1 points.
  void cheapest() {
    const auto smallest = std::min_element(report_.budgets.begin(), report_.budgets.end());
    const double least = smallest == report_.budgets.end() ? 0.1 : std::max(0.1, *smallest / 5);
    struct Row {
      const LayerSensitivity* layer;
      const KnobSensitivity* knob;
      double saved;
    };
    std::vector<Row> rows;
    for (const LayerSensitivity& layer : result_.layers) {
      Row best{&layer, nullptr, 0};
      for (const KnobSensitivity& knob : layer.knobs) {
        const double saved = layer.knobs[0].ns - knob.ns;
        if (knob.loss <= least && saved > best.saved) {
          best = {&layer, &knob, saved};
        }
      }
      if (best.knob != nullptr) {
        rows.push_back(best);
      }
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.saved > b.saved; });
    constexpr std::size_t kMost = 8;
    rows.resize(std::min(rows.size(), kMost));
    if (rows.empty()) {
      return;
    }
    add("<div class=\"scroll\"><table>\n<thead><tr><th>saves most, alone, within ", in_unit(least),
        "</th><th>knob</th><th>loss</th><th>saved</th></tr></thead>\n<tbody>\n");
    for (const Row& row : rows) {
      add("<tr><td>", html_escaped(row.layer->layer), "</td><td>", html_escaped(row.knob->knob),
          "</td><td>", lost_text(row.knob->loss), "</td><td>", time_text(row.saved),
          "</td></tr>\n");
    }
    add("</tbody></table></div>\n");
  }

  void facts() {
    add("<section>\n<h2>How it was measured</h2>\n<dl class=\"facts\">\n");
    std::string budgets;
    for (const double budget : report_.budgets) {
      budgets += concat(budgets.empty() ? "" : ", ", budget);
    }
    fact("budgets", concat(budgets, " ", report_.unit));
    for (const auto& [name, value] : report_.facts) {
      fact(html_escaped(name), value);
    }
    add("</dl>\n</section>\n");
  }

  [[nodiscard]] std::string figure(const report_internal::Figure& each) const {
    return report_internal::figure_html(each, report_.source);
  }

  void fact(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      add("<dt>", name, "</dt><dd>", html_escaped(value), "</dd>\n");
    }
  }

  [[nodiscard]] std::string unit() const { return html_escaped(report_.unit); }
  [[nodiscard]] std::string in_unit(double loss) const {
    return concat(loss, " ", loss == 1 && report_.unit == "points" ? "point" : unit());
  }

  const ApproxReport& report_;
  const approx::ApproxResult& result_;
};

}  // namespace

std::string missed_budgets_text(const approx::ApproxResult& result,
                                std::span<const double> budgets) {
  std::vector<std::string> missed;
  for (const double budget : budgets) {
    if (!fastest_within(result, budget)) {
      missed.push_back(concat(budget));
    }
  }
  return missed.empty() ? std::string()
                        : concat("No faster network keeps the budget",
                                 missed.size() == 1 ? " " : "s ", join(missed, ", "), ".");
}

std::string approx_html(const ApproxReport& report) { return ApproxPage(report).write(); }

std::vector<FigureFile> approx_figures(const ApproxReport& report) {
  using namespace report_internal;  // NOLINT(google-build-using-namespace)
  std::vector<FigureFile> out;
  for (const Figure& figure :
       {loss_by_speedup_plot(report), predicted_loss_plot(report), predicted_time_plot(report),
        test_loss_plot(report), sensitivity_plot(report)}) {
    add_file(out, figure, report.source);
  }
  return out;
}

}  // namespace foretune
