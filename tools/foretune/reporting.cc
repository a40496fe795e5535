#include "tools/foretune/reporting.h"

#include <filesystem>
#include <system_error>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

Status show_report(const ReportArguments& arguments, const Evaluation& evaluation,
                   const std::string& json_text, const std::string& title,
                   const std::string& source) {
  print(report_text(evaluation, output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.json, json_text));
  }
  if (!arguments.html.empty()) {
    FORETUNE_TRY_STATUS(
        write_text_file_atomically(arguments.html, report_html(evaluation, title, source)));
    print(concat("report: ", arguments.html, "\n"));
  }
  return arguments.figures.empty()
             ? Status()
             : write_figures(arguments.figures, report_figures(evaluation, source));
}

Status write_figures(const std::string& folder, const std::vector<FigureFile>& figures) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, folder, ": ", error.message());
  }
  for (const FigureFile& figure : figures) {
    const std::filesystem::path path = std::filesystem::path(folder) / (figure.name + ".svg");
    FORETUNE_TRY_STATUS(write_text_file_atomically(path.string(), figure.svg));
  }
  print(concat("figures: ", folder, ", ", count_of(figures.size(), "file"), "\n"));
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
