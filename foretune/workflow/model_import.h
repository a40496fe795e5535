// The options of importing a model of CK Tile's heuristics or of torch-diode, and the import
// itself. Nothing here prints.
//
//   ImportModelArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const ImportedModel imported, run_import(arguments, invocation));
//   FORETUNE_TRY_STATUS(write_model(imported.model, arguments.output));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/interop/ck/import_model.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/interop/diode/diode_checkpoint.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct ImportModelArguments {
  std::string input;
  std::string output;
  std::string pool;
  std::string kernels;
  std::string target = "tflops";
  std::string family = "recorded";
  std::int64_t portfolio_size = ImportOptions().portfolio_size;
  std::string diode_kind = "auto";
  bool raw = false;
  bool overwrite = false;

  void visit(OptionList& list);
};

// A model, and the directory or the checkpoint that it was.
struct ImportedModel {
  Model model;
  std::optional<ModelDirectory> directory{};
  std::optional<DiodeCheckpoint> checkpoint{};
};

// Errors: kInvalidArgument for options that make no sense together and for an existing output;
// those of the files and of the import.
Result<ImportedModel> run_import(const ImportModelArguments& arguments,
                                 const Invocation& invocation);

}  // namespace foretune::workflow
