// foretune approx: finds networks that are as fast as a loss of quality allows.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/report/approx_report.h"
#include "foretune/workflow/approximation.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/reporting.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

std::string right(std::string_view text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ').append(text);
}

std::string points(double loss) { return std::isfinite(loss) ? fixed(loss, 2) : "-"; }

void print_result(const Approximation& approximation, const ApproximationArguments& arguments) {
  const approx::ApproxResult& result = approximation.result;
  const std::string_view unit = approximation.metric->unit();
  print(concat("exact: ", time_text(result.exact.time_ns), " for ",
               count_of(static_cast<std::uint64_t>(arguments.images), "image")));
  print(std::isfinite(result.exact.test_quality)
            ? concat(", ", approximation.metric->name(), " ", fixed(result.exact.test_quality, 2),
                     " ", unit, " on the test images\n")
            : "\n");
  if (result.chosen.empty()) {
    print("no faster network keeps the budgets\n");
    return;
  }
  print(concat("\n                         loss in ", unit,
               "\nspeed-up        time   tuning  at most     test   budget\n"));
  for (const approx::ApproxConfig& each : result.chosen) {
    print(concat(right(fixed(each.speedup, 2), 8), right(time_text(each.time_ns), 12),
                 right(points(each.tune_loss), 9), right(points(each.loss_high), 9),
                 right(points(each.test_loss), 9), right(points(each.budget), 9), "\n"));
  }
  if (const std::string missed = missed_budgets_text(result, approximation.budgets);
      !missed.empty()) {
    print(concat("\n", missed, "\n"));
  }
  print(concat("\n", result.chosen.front().text, "\n  is the fastest. ",
               count_of(result.measured, "network"), word_for(result.measured, " was", " were"),
               " measured, in ", duration_text(result.seconds), " altogether.\n"));
  const approx::ModelJudgement& judged = result.judgement;
  if (judged.networks > 0) {
    print(concat("Models on ", count_of(judged.networks, "random network"), ": quality off by ",
                 fixed(judged.fit_error, 2), " ", unit, " (P1 ", fixed(judged.p1_error, 2), ", P2 ",
                 fixed(judged.p2_error, 2), "), rank correlation ", fixed(judged.fit_spearman, 3),
                 ", time off by ", fixed(100 * judged.time_error, 1), " %\n"));
  }
  if (const approx::SearchComparison& search = result.search; search.plain.evaluations > 0) {
    print(concat("A search without models measured ", count_of(search.plain.evaluations, "network"),
                 ", ", search.plain.has_reached ? "" : "and was still not as good, ", "ours ",
                 search.measured, "\n"));
  }
}

Result<int> run_approx(const ApproximationArguments& arguments, const Invocation& invocation) {
  ProgressLine line;
  ApproximationHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_phase = [&](std::string_view text) {
    if (line.due()) {
      line.show(text);
    }
  };
  FORETUNE_TRY(const Approximation result, approximate(arguments, invocation, hooks));
  line.clear();
  print_result(result, arguments);
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(
        write_text_file_atomically(arguments.json, approximation_json(result, invocation)));
  }
  const ApproxReport report = approximation_report(result, arguments, invocation);
  if (!arguments.report.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.report, approx_html(report)));
    print(concat("report: ", arguments.report, "\n"));
  }
  if (!arguments.figures.empty()) {
    FORETUNE_TRY_STATUS(write_figures(arguments.figures, approx_figures(report)));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_approx(OptionList& list) {
  return prepare_with<ApproximationArguments, run_approx>(list);
}

}  // namespace foretune::cli
