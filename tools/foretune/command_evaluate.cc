// foretune evaluate: judges a way of training from one data set.
#include <string>

#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/evaluation.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/reporting.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> run_evaluate(const EvaluateArguments& arguments, const Invocation& invocation) {
  ProgressLine line;
  EvaluateHooks hooks;
  hooks.on_progress = [&](const TrainProgress& progress, const OuterSplit& split) {
    if (line.due()) {
      line.show(concat("without ", split.name, ": ", progress.stage, ": tree ", progress.tree, "/",
                       progress.trees));
    }
    return !stop_flag().load();
  };
  FORETUNE_TRY(const TrainingEvaluation judged, run_evaluation(arguments, invocation, hooks));
  line.clear();
  const std::string& command = invocation.command_line;
  if (judged.of_model) {
    FORETUNE_TRY_STATUS(
        show_report(arguments.report, *judged.of_model,
                    report_json(*judged.of_model, "evaluate", command, judged.machine),
                    concat(judged.family, " on ", judged.machine.device), judged.source));
    return kExitOk;
  }
  if (judged.fronts) {
    FORETUNE_TRY_STATUS(
        show_fronts(arguments.report, *judged.fronts,
                    fronts_json(*judged.fronts, "evaluate", command, judged.machine)));
    return kExitOk;
  }
  if (judged.unseen) {
    FORETUNE_TRY_STATUS(
        show_unseen(arguments.report, *judged.unseen,
                    unseen_json(*judged.unseen, "evaluate", command, judged.machine)));
    return kExitOk;
  }
  print(concat(splits_text(judged.picks), "\n"));
  FORETUNE_TRY_STATUS(
      show_report(arguments.report, judged.picks.evaluation,
                  cross_report_json(judged.picks, "evaluate", command, judged.machine),
                  concat(judged.family, " on ", judged.machine.device,
                         arguments.leave_out.empty() ? std::string(", nested folds")
                                                     : concat(", without ", arguments.leave_out)),
                  judged.source));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_evaluate(OptionList& list) {
  return prepare_with<EvaluateArguments, run_evaluate>(list);
}

}  // namespace foretune::cli
