#include "tools/foretune/reporting.h"

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

Status show_report(const ReportArguments& arguments, const Evaluation& evaluation,
                   const std::string& json_text, const std::string& title) {
  print(report_text(evaluation, output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.json, json_text));
  }
  if (!arguments.html.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.html, report_html(evaluation, title)));
    print(concat("report: ", arguments.html, "\n"));
  }
  return {};
}

Status show_fronts(const ReportArguments& arguments, const FrontEvaluation& fronts,
                   const std::string& json_text) {
  print(fronts_text(fronts, static_cast<std::size_t>(arguments.top_n_worst)));
  return arguments.json.empty() ? Status() : write_text_file_atomically(arguments.json, json_text);
}

Status show_unseen(const ReportArguments& arguments, const UnseenEvaluation& unseen,
                   const std::string& json_text) {
  print(unseen_text(unseen));
  return arguments.json.empty() ? Status() : write_text_file_atomically(arguments.json, json_text);
}

}  // namespace foretune::cli
