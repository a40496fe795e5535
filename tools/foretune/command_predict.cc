// foretune predict: ranks the best configs for one problem.
#include "foretune/base/file.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/prediction.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> run_predict(const PredictArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const Prediction prediction, run_prediction(arguments));
  print(prediction_text(prediction, output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, prediction_json(prediction, invocation.command_line)));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_predict(OptionList& list) {
  return prepare_with<PredictArguments, run_predict>(list);
}

}  // namespace foretune::cli
