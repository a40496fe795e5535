// foretune validate-model: measures how close a model's picks come to the best.
#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/validation.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/reporting.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> validate(const ValidateArguments& arguments, const Invocation& invocation) {
  ProgressLine line;
  ValidateHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_progress = [&](const CollectProgress& progress, std::string_view stage) {
    if (line.due()) {
      line.show(concat(stage, ": problem ", progress.problems_done, "/", progress.problems_total));
    }
  };
  FORETUNE_TRY(const Validation validation, run_validation(arguments, invocation, hooks));
  line.clear();
  const std::string& command = invocation.command_line;
  if (validation.fronts) {
    FORETUNE_TRY_STATUS(show_fronts(
        arguments.report, *validation.fronts,
        fronts_json(*validation.fronts, "validate-model", command, validation.machine)));
    return kExitOk;
  }
  FORETUNE_TRY_STATUS(
      show_report(arguments.report, validation.evaluation,
                  report_json(validation.evaluation, "validate-model", command, validation.machine),
                  concat(validation.family, " on ", validation.machine.device), validation.source));
  if (arguments.pass_mark) {
    print(concat("the mean efficiency ", validation.passes ? "reaches" : "is below",
                 " the pass mark of ", *arguments.pass_mark, " %\n"));
  }
  return validation.passes ? kExitOk : kExitRejected;
}

}  // namespace

std::function<int(const Invocation&)> prepare_validate_model(OptionList& list) {
  return prepare_with<ValidateArguments, validate>(list);
}

}  // namespace foretune::cli
