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
#include "foretune/documents/svg.h"
#include "foretune/evaluate/report.h"
#include "foretune/evaluate/report_page.h"
#include "foretune/evaluate/tune_analysis.h"
#include "foretune/evaluate/tune_plots.h"
#include "foretune/evaluate/tune_report.h"

namespace foretune {
namespace {

using documents::html_escaped;
using evaluate_internal::bound_lines;
using evaluate_internal::metric_gain_text;
using evaluate_internal::metric_text;
using evaluate_internal::metric_value;
using evaluate_internal::TuneAnalysis;
using evaluate_internal::values_text;

// The finalist that stands for the problem.
const TunedConfig& chosen_of(const TuneResult& result, const TuneAnalysis& analysis) {
  const std::size_t chosen = evaluate_internal::chosen_finalist(result, analysis);
  return result.finalists[chosen < result.finalists.size() ? chosen : 0];
}

class TunePage {
 public:
  explicit TunePage(const TuneReport& report) : report_(report) {
    for (const TunedProblem& tuned : report.problems) {
      analyses_.push_back(evaluate_internal::analyse_tuning(tuned.result));
    }
  }

  std::string write(const std::string& title) {
    out_ = evaluate_internal::page_opening(title);
    lead();
    refused();
    if (report_.problems.size() > 1) {
      summary_table();
    }
    for (std::size_t i = 0; i < report_.problems.size(); ++i) {
      problem(i);
    }
    facts();
    out_ += evaluate_internal::kPageEnd;
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    out_ += concat(parts...);
  }

  void lead() {
    if (report_.problems.empty()) {
      return;
    }
    add("<p class=\"lead\"><b>",
        html_escaped(report_.problems.front().result.judge->objective().text()), "</b>");
    if (report_.problems.size() > 1) {
      add(" on ", count_text(report_.problems.size()), " problems", html_escaped(mean_gain()));
    }
    out_ += "</p>\n";
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
    out_ += "<div class=\"warnings\"><ul>";
    for (const auto& [problem, reason] : report_.refused) {
      add("<li>", html_escaped(problem), ": ", html_escaped(reason), "</li>");
    }
    out_ += "</ul></div>\n";
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
    out_ += "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < report_.problems.size(); ++i) {
      const TuneResult& result = report_.problems[i].result;
      const TuneAnalysis& analysis = analyses_[i];
      add("<tr><td class=\"problem\"><a href=\"#p", i + 1, "\">",
          html_escaped(report_.problems[i].problem.text()), "</a></td><td>",
          count_text(result.measured.size()), "</td>");
      if (has_bounds) {
        add("<td>", count_text(analysis.met), "</td>");
      }
      if (is_pareto) {
        add("<td>", count_text(analysis.front.size()), "</td><td>",
            std::isnan(analysis.share)
                ? std::string(evaluate_internal::kNoNumber)
                : concat(evaluate_internal::percent_text(analysis.share), " %"),
            "</td>");
      }
      metric_cells(result, chosen_of(result, analysis), with_gain);
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n</section>\n";
  }

  // A value for each metric and, where it is wanted, the gain over the default config.
  void metric_cells(const TuneResult& result, const TunedConfig& tuned, bool with_gain) {
    for (const MetricInfo& info : result.judge->metrics()) {
      const MetricValue* const found = find_metric(tuned.values, info.name);
      add("<td>", html_escaped(metric_text(metric_value(tuned.values, info.name), info.unit)));
      if (found != nullptr && found->spread > 0) {
        add(" <span class=\"soft\">\u00b1", fixed(100 * found->spread, 1), " %</span>");
      }
      out_ += "</td>";
      if (with_gain) {
        const bool is_default = result.by_default && &tuned == &*result.by_default;
        add("<td>",
            is_default || !result.by_default
                ? std::string(is_default ? "" : evaluate_internal::kNoNumber)
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
    add("<section id=\"p", index + 1, "\">\n<h2>", html_escaped(tuned.problem.text()), "</h2>\n");
    const std::vector<std::string> plots =
        evaluate_internal::tune_plots(tuned.result, analysis, report_.schema);
    const std::string legend = evaluate_internal::tune_legend(tuned.result, analysis);
    out_ += "<div class=\"pair tuned\">\n";
    for (const std::string& plot : plots) {
      add("<div>", plot, plots.size() == 1 ? legend : "", "</div>\n");
    }
    // Beside the last plot, or below a full row.
    add(plots.size() % 2 == 0 ? "<div class=\"row\">\n" : "<div>\n",
        plots.size() > 1 ? legend : "");
    outcome(tuned, analysis);
    out_ += "</div>\n</div>\n";
    finalists(tuned.result, analysis);
    out_ += "</section>\n";
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
    out_ += "<dl class=\"facts\">\n";
    if (evaluate_internal::chosen_finalist(result, analysis) < result.finalists.size()) {
      fact(analysis.knee ? "knee" : "best", values_text(judge, chosen_of(result, analysis), false));
    }
    if (result.by_default) {
      fact("default config", values_text(judge, *result.by_default, false));
    }
    for (const std::string& line : bound_lines(result)) {
      fact("bound", line);
    }
    fact("configs", evaluate_internal::bounds_met_text(result, analysis));
    if (is_pareto) {
      fact("front", evaluate_internal::front_text(result, analysis));
      fact("hypervolume", evaluate_internal::hypervolume_text(result, analysis));
    }
    const CollectProgress& progress = result.progress;
    fact("measured",
         concat(count_text(progress.measured), " times in ", seconds_text(progress.elapsed_s),
                result.legal_configs
                    ? concat("; ", count_text(*result.legal_configs), " legal configs")
                    : std::string(),
                result.exhausted ? ", all of them tried" : ""));
    fact("note", evaluate_internal::now_missed_text(analysis));
    out_ += "</dl>\n";
  }

  void finalists(const TuneResult& result, const TuneAnalysis& analysis) {
    add("<div class=\"scroll\"><table class=\"finalists\">\n<thead><tr><th></th>");
    const bool with_gain = result.by_default.has_value();
    for (const MetricInfo& info : result.judge->metrics()) {
      add("<th>", html_escaped(info.name), "</th>", with_gain ? "<th>gain</th>" : "");
    }
    out_ += "<th class=\"config\">config</th></tr></thead>\n<tbody>\n";
    const std::string reference =
        evaluate_internal::config_text(report_.schema, chosen_of(result, analysis));
    const std::size_t chosen = evaluate_internal::chosen_finalist(result, analysis);
    for (std::size_t i = 0; i < result.finalists.size(); ++i) {
      const TunedConfig& tuned = result.finalists[i];
      finalist_row(result, tuned, concat(i + 1, analysis.knee == i ? " knee" : ""), reference,
                   chosen == i);
    }
    if (result.by_default) {
      finalist_row(result, *result.by_default, "default", reference, false);
    }
    out_ += "</tbody></table></div>\n";
  }

  void finalist_row(const TuneResult& result, const TunedConfig& tuned, const std::string& label,
                    const std::string& reference, bool is_chosen) {
    add("<tr", is_chosen ? " class=\"model\"" : "", "><td>", label, "</td>");
    metric_cells(result, tuned, result.by_default.has_value());
    add("<td class=\"config\">",
        evaluate_internal::config_html(evaluate_internal::config_text(report_.schema, tuned),
                                       reference),
        "</td></tr>\n");
  }

  void facts() {
    out_ += "<section>\n<h2>How it was measured</h2>\n<dl class=\"facts\">\n";
    for (const auto& [name, value] : report_.facts) {
      fact(html_escaped(name), value);
    }
    out_ +=
        "</dl>\n<p class=\"hint\" style=\"margin:16px 0 0\">Every config is measured briefly in "
        "the search; the finalists and the default config once more, interleaved. Tables have the "
        "values of this comparison, small dots those of the search. Gains are factors of times, "
        "bytes and energies, differences of other metrics; in both more is better. Words of a "
        "config that differ from the chosen one are marked.</p>\n</section>\n";
  }

  const TuneReport& report_;
  std::vector<TuneAnalysis> analyses_;
  std::string out_;
};

}  // namespace

std::string tune_html(const TuneReport& report, const std::string& title) {
  return TunePage(report).write(title);
}

}  // namespace foretune
