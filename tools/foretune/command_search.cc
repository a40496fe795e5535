// foretune search: a strategy walks the space of a problem, and a model scores its proposals.
#include "foretune/base/file.h"
#include "foretune/report/search_report.h"
#include "foretune/workflow/config_search.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> list_found(const SearchArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const SearchReport report, run_search(arguments, invocation));
  print(search_text(report, output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(
        write_text_file_atomically(arguments.json, search_json(report, invocation.command_line)));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_search(OptionList& list) {
  return prepare_with<SearchArguments, list_found>(list);
}

}  // namespace foretune::cli
