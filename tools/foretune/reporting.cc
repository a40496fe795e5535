#include "tools/foretune/reporting.h"

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

void ReportArguments::visit(OptionList& list) {
  list.add("top-n-worst", top_n_worst, "N", "number of worst problems to list").at_least(0);
  list.add("json", json, "FILE", "write the figures as JSON");
  list.add("html", html, "FILE", "write the report as one self-contained page");
}

Status ReportArguments::show(const Evaluation& evaluation, const std::string& json_text,
                             const std::string& title) const {
  print(report_text(evaluation, output_has_color()));
  if (!json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(json, json_text));
  }
  if (!html.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(html, report_html(evaluation, title)));
    print(concat("report: ", html, "\n"));
  }
  return {};
}

}  // namespace foretune::cli
