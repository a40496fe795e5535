// Prints the figures of picks, and writes the files that the options name.
// Thread safety: used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/evaluate/unseen_configs.h"
#include "foretune/report/figure_file.h"
#include "foretune/workflow/report_arguments.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {

// Prints the text and writes the given files; `json_text` is the content of --json.
// `source` says where the figures come from.
Status show_report(const ReportArguments& arguments, const Evaluation& evaluation,
                   const std::string& json_text, const std::string& title,
                   const std::string& source);
// The same of predicted fronts, which no page shows.
Status show_fronts(const ReportArguments& arguments, const FrontEvaluation& fronts,
                   const std::string& json_text);

// The same of picks among configs that training lacks.
Status show_unseen(const ReportArguments& arguments, const UnseenEvaluation& unseen,
                   const std::string& json_text);

// Writes each figure into the folder, which is made where it is missing. Errors: kIo.
Status write_figures(const std::string& folder, const std::vector<FigureFile>& figures);

}  // namespace foretune::cli
