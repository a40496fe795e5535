// foretune predict: ranks the best configs for one problem, or for each in a list.
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/prediction.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> run_predict(const PredictArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const std::vector<Prediction> found, run_prediction(arguments, invocation));
  const bool is_list = !arguments.problems.empty();
  print(is_list ? predictions_text(found, output_has_color())
                : prediction_text(found.front(), output_has_color()));
  if (!arguments.json.empty()) {
    const std::string& command = invocation.command_line;
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json,
        is_list ? predictions_json(found, command) : prediction_json(found.front(), command)));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_predict(OptionList& list) {
  return prepare_with<PredictArguments, run_predict>(list);
}

}  // namespace foretune::cli
