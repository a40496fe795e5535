// foretune export: writes a model's fast mode as source that links nothing of ours.
#include <string>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/export_cpp/export_cpp.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct ExportArguments {
  std::string model;
  std::string cpp;
  CppExportOptions options;
  void visit(OptionList& list) {
    list.add_positional("model", model, "model file, trained with --fast").require();
    list.add("cpp", cpp, "FILE", "C++17 header to write").require();
    list.add("namespace", options.name_space, "NAME", "namespace of all that the header declares");
    list.add("max-regret", options.max_regret, "X",
             "predicted loss (ln time) above which the header does not call a pick trusted");
  }
};

Result<int> export_model(const ExportArguments& arguments, const Invocation& /*invocation*/) {
  FORETUNE_TRY(const Model model, read_model(arguments.model));
  FORETUNE_TRY(const std::string header, cpp_header(model, arguments.options));
  FORETUNE_TRY_STATUS(write_file_atomically(arguments.cpp, bytes_of(header)));
  print(concat("wrote ", arguments.cpp, ": ", count_of(model.distilled->portfolio.size(), "config"),
               ", ", count_of(header.size(), "byte"), "\n"));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_export(OptionList& list) {
  return prepare_with<ExportArguments, export_model>(list);
}

}  // namespace foretune::cli
