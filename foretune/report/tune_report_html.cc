// The page of `foretune tune`.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/page.h"
#include "foretune/report/internal/tune_analysis.h"
#include "foretune/report/internal/tune_plots.h"
#include "foretune/report/tune_report.h"

namespace foretune {
namespace {

using formats::html_escaped;
using report_internal::bound_lines;
using report_internal::metric_gain_text;
using report_internal::metric_value;
using report_internal::TuneAnalysis;
using report_internal::values_text;

// The finalist that stands for the problem.
const TunedConfig& chosen_of(const TuneResult& result, const TuneAnalysis& analysis) {
  const std::size_t chosen = report_internal::chosen_finalist(result, analysis);
  return result.finalists[chosen < result.finalists.size() ? chosen : 0];
}

class TunePage : private report_internal::Page {
 public:
  TunePage(const TuneReport& report, const std::string& title) : Page(title), report_(report) {
    for (const TunedProblem& tuned : report.problems) {
      analyses_.push_back(report_internal::analyse_tuning(tuned.result));
    }
  }

  std::string write() {
    lead();
    refused();
    if (report_.problems.size() > 1) {
      summary_table();
    }
    for (std::size_t i = 0; i < report_.problems.size(); ++i) {
      problem(i);
    }
    facts();
    return finish(report_.source);
  }

 private:
  void lead() {
    if (report_.problems.empty()) {
      return;
    }
    add("<p class=\"lead\"><b>",
        html_escaped(report_.problems.front().result.judge->objective().text()), "</b>");
    if (report_.problems.size() > 1) {
      add(" on ", count_of(report_.problems.size(), "problem"), html_escaped(mean_gain()));
    }
    add("</p>\n");
  }

  // Over the default config in the first target, where that is a ratio.
  [[nodiscard]] std::string mean_gain() const {
    std::vector<double> gains;
    for (std::size_t i = 0; i < report_.problems.size(); ++i) {
      const TuneResult& result = report_.problems[i].result;
      const MetricInfo& target = result.judge->metrics().front();
      if (!result.by_default || target.name != kTimeNs) {
        return {};
      }
      gains.push_back(metric_value(result.by_default->values, kTimeNs) /
                      metric_value(chosen_of(result, analyses_[i]).values, kTimeNs));
    }
    const bool is_pareto = report_.problems.front().result.judge->objective().is_pareto();
    return concat(": the ", is_pareto ? "knees" : "best", " are ", fixed(geometric_mean(gains), 2),
                  " times as fast as the default config in the geometric mean");
  }

  void refused() {
    if (report_.refused.empty()) {
      return;
    }
    add("<div class=\"warnings\"><ul>");
    for (const auto& [problem, reason] : report_.refused) {
      add("<li>", html_escaped(problem), ": ", html_escaped(reason), "</li>");
    }
    add("</ul></div>\n");
  }

  // The first problem stands for all: they were tuned for one objective.
  void summary_table() {
    const Judge& judge = *report_.problems.front().result.judge;
    const bool is_pareto = judge.objective().is_pareto();
    const bool has_bounds = !judge.objective().bounds.empty();
    const bool with_gain =
        std::any_of(report_.problems.begin(), report_.problems.end(),
                    [](const TunedProblem& tuned) { return tuned.result.by_default.has_value(); });
    add("<section>\n<h2>All problems</h2>\n<p class=\"hint\">Values of the ",
        is_pareto ? "knee of each front" : "best config",
        with_gain ? "; gains over the family's default config.</p>\n" : ".</p>\n",
        "<div class=\"scroll\"><table>\n<thead><tr><th></th><th>measured</th>",
        has_bounds ? "<th>meet bounds</th>" : "",
        is_pareto ? "<th>front</th><th>hypervolume</th>" : "");
    for (const MetricInfo& info : judge.metrics()) {
      add("<th>", html_escaped(info.name), with_gain ? "</th><th>gain</th>" : "</th>");
    }
    add("</tr></thead>\n<tbody>\n");
    for (std::size_t i = 0; i < report_.problems.size(); ++i) {
      const TuneResult& result = report_.problems[i].result;
      const TuneAnalysis& analysis = analyses_[i];
      add("<tr><td class=\"problem\"><a href=\"#p", i + 1, "\">",
          html_escaped(report_.problems[i].problem.shown_text()), "</a></td><td>",
          count_text(result.measured.size()), "</td>");
      if (has_bounds) {
        add("<td>", count_text(analysis.met), "</td>");
      }
      if (is_pareto) {
        add("<td>", count_text(analysis.front.size()), "</td><td>",
            std::isnan(analysis.share)
                ? std::string(report_internal::kNoNumber)
                : concat(report_internal::percent_text(analysis.share), " %"),
            "</td>");
      }
      metric_cells(result, chosen_of(result, analysis), with_gain);
      add("</tr>\n");
    }
    add("</tbody></table></div>\n</section>\n");
  }

  // A value for each metric and, where it is wanted, the gain over the default config.
  void metric_cells(const TuneResult& result, const TunedConfig& tuned, bool with_gain) {
    for (const MetricInfo& info : result.judge->metrics()) {
      const MetricValue* const found = find_metric(tuned.values, info.name);
      add("<td>", html_escaped(metric_text(metric_value(tuned.values, info.name), info.unit)));
      if (found != nullptr && found->spread > 0) {
        add(" <span class=\"soft\">\u00b1", fixed(100 * found->spread, 1), " %</span>");
      }
      add("</td>");
      if (with_gain) {
        const bool is_default = result.by_default && &tuned == &*result.by_default;
        add("<td>",
            is_default || !result.by_default
                ? std::string(is_default ? "" : report_internal::kNoNumber)
                : html_escaped(
                      metric_gain_text(*result.judge, info, metric_value(tuned.values, info.name),
                                       metric_value(result.by_default->values, info.name))),
            "</td>");
      }
    }
  }

  void problem(std::size_t index) {
    const TunedProblem& tuned = report_.problems[index];
    const TuneAnalysis& analysis = analyses_[index];
    add("<section id=\"p", index + 1, "\">\n<h2>", html_escaped(tuned.problem.shown_text()),
        "</h2>\n");
    const std::vector<report_internal::Figure> plots =
        report_internal::tune_plots(tuned.result, analysis, report_.schema);
    add("<div class=\"pair tuned\">\n");
    for (const report_internal::Figure& plot : plots) {
      add(report_internal::figure_html(plot, report_.source));
    }
    // Beside the last plot, or below a full row.
    add(plots.size() % 2 == 0 ? "<div class=\"row\">\n" : "<div>\n");
    outcome(tuned, analysis);
    add("</div>\n</div>\n");
    finalists(tuned.result, analysis);
    add("</section>\n");
  }

  void fact(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      add("<dt>", name, "</dt><dd>", html_escaped(value), "</dd>\n");
    }
  }

  void outcome(const TunedProblem& tuned, const TuneAnalysis& analysis) {
    const TuneResult& result = tuned.result;
    const Judge& judge = *result.judge;
    const bool is_pareto = judge.objective().is_pareto();
    add("<dl class=\"facts\">\n");
    if (report_internal::chosen_finalist(result, analysis) < result.finalists.size()) {
      fact(analysis.knee ? "knee" : "best", values_text(judge, chosen_of(result, analysis), false));
    }
    if (result.by_default) {
      fact("default config", values_text(judge, *result.by_default, false));
    }
    for (const std::string& line : bound_lines(result)) {
      fact("bound", line);
    }
    fact("configs", report_internal::bounds_met_text(result, analysis));
    if (is_pareto) {
      fact("front", report_internal::front_text(result, analysis));
      fact("hypervolume", report_internal::hypervolume_text(result, analysis));
    }
    const CollectProgress& progress = result.progress;
    fact("measured", concat(count_of(progress.measured, "time"), " in ",
                            seconds_text(progress.elapsed_s), report_internal::tried_text(result)));
    fact("note", report_internal::now_missed_text(analysis));
    add("</dl>\n");
  }

  static bool shows_packing(const TuneResult& result) {
    return std::ranges::any_of(result.finalists, [&](const TunedConfig& tuned) {
      return report_internal::packing_of(result, tuned).has_value();
    });
  }

  void finalists(const TuneResult& result, const TuneAnalysis& analysis) {
    add("<div class=\"scroll\"><table class=\"finalists\">\n<thead><tr><th></th>");
    const bool with_gain = result.by_default.has_value();
    for (const MetricInfo& info : result.judge->metrics()) {
      add("<th>", html_escaped(info.name), "</th>", with_gain ? "<th>gain</th>" : "");
    }
    add(shows_packing(result) ? "<th>packing pays after</th>" : "",
        "<th class=\"config\">config</th></tr></thead>\n<tbody>\n");
    const std::string reference =
        report_internal::config_text(report_.schema, chosen_of(result, analysis));
    const std::size_t chosen = report_internal::chosen_finalist(result, analysis);
    for (std::size_t i = 0; i < result.finalists.size(); ++i) {
      const TunedConfig& tuned = result.finalists[i];
      finalist_row(result, tuned, concat(i + 1, analysis.knee == i ? " knee" : ""), reference,
                   chosen == i);
    }
    if (result.by_default) {
      finalist_row(result, *result.by_default, "default", reference, false);
    }
    add("</tbody></table></div>\n");
  }

  void finalist_row(const TuneResult& result, const TunedConfig& tuned, const std::string& label,
                    const std::string& reference, bool is_chosen) {
    add("<tr", is_chosen ? " class=\"model\"" : "", "><td>", label, "</td>");
    metric_cells(result, tuned, result.by_default.has_value());
    if (shows_packing(result)) {
      add("<td>", report_internal::packing_text(report_internal::packing_of(result, tuned)),
          "</td>");
    }
    add("<td class=\"config\">",
        report_internal::config_html(report_internal::config_text(report_.schema, tuned),
                                     reference),
        "</td></tr>\n");
  }

  void facts() {
    add("<section>\n<h2>How it was measured</h2>\n<dl class=\"facts\">\n");
    for (const auto& [name, value] : report_.facts) {
      fact(html_escaped(name), value);
    }
    add("</dl>\n<p class=\"hint\" style=\"margin:16px 0 0\">Every config is measured briefly in "
        "the search; the finalists and the default config once more, interleaved. Tables have the "
        "values of this comparison, small dots those of the search. Gains are factors of times, "
        "bytes and energies, differences of other metrics; in both more is better. Words of a "
        "config that differ from the chosen one are marked.</p>\n</section>\n");
  }

  const TuneReport& report_;
  std::vector<TuneAnalysis> analyses_;
};

}  // namespace

std::string tune_html(const TuneReport& report, const std::string& title) {
  return TunePage(report, title).write();
}

std::vector<FigureFile> tune_figures(const TuneReport& report) {
  std::vector<FigureFile> out;
  for (std::size_t i = 0; i < report.problems.size(); ++i) {
    const TunedProblem& tuned = report.problems[i];
    for (report_internal::Figure& figure : report_internal::tune_plots(
             tuned.result, report_internal::analyse_tuning(tuned.result), report.schema)) {
      figure.name = concat(i + 1, "-", figure.name);
      figure.note = tuned.problem.shown_text();
      report_internal::add_file(out, figure, report.source);
    }
  }
  return out;
}

}  // namespace foretune
