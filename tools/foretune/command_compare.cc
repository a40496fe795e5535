// foretune compare: compares an old model with a new one, and decides if the new one may replace
// it. With --retrain it compares old data with new data, by models of both.
#include <string_view>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/comparison.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> compare(const CompareArguments& arguments, const Invocation& invocation) {
  ProgressLine line;
  CompareHooks hooks;
  hooks.on_progress = [&](const TrainProgress& progress, std::string_view training) {
    if (line.due()) {
      line.show(concat(training, ", ", progress.stage, ": tree ", progress.tree));
    }
    return !stop_flag().load();
  };
  FORETUNE_TRY(const ModelComparison comparison, run_comparison(arguments, invocation, hooks));
  line.clear();
  print(comparison_text(comparison, static_cast<std::size_t>(arguments.list), output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, comparison_json(comparison, invocation.command_line)));
  }
  return comparison.accepted() ? kExitOk : kExitRejected;
}

}  // namespace

std::function<int(const Invocation&)> prepare_compare(OptionList& list) {
  return prepare_with<CompareArguments, compare>(list);
}

}  // namespace foretune::cli
