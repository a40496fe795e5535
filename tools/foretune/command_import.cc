// foretune import-model: makes a model file from a model directory of CK Tile's heuristics, or from
// a checkpoint of torch-diode.
#include <cstddef>

#include "foretune/base/text.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/network/network_body.h"
#include "foretune/workflow/model_import.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

void print_checkpoint(const DiodeCheckpoint& checkpoint, const Model& model) {
  std::size_t weights = 0;
  for (const TorchLayer& layer : checkpoint.layers) {
    weights += layer.weight.size() + layer.bias.size();
  }
  print(concat("torch-diode ", to_string(checkpoint.kind), ": ", count_of(weights, "weight"),
               " on ", count_of(networks_of(model).front().inputs.size(), "column"), " of ",
               model.feature_table, "\n"));
}

void print_directory(const ModelDirectory& directory, const Model& model) {
  print(concat(directory.op_type, " ", directory.dtype, " ", directory.arch, ": ",
               count_of(forests_of(model).front().trees.size(), "tree"), " on ",
               count_of(directory.feature_names.size(), "feature"), ", as columns of ",
               model.feature_table, "\n"));
}

Result<int> import_model(const ImportModelArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const ImportedModel imported, run_import(arguments, invocation));
  const Model& model = imported.model;
  if (imported.checkpoint) {
    print_checkpoint(*imported.checkpoint, model);
  }
  if (imported.directory) {
    print_directory(*imported.directory, model);
  }
  FORETUNE_TRY_STATUS(write_model(model, arguments.output));
  print(concat(count_of(model.pool.size(), "candidate"), ", ", model.portfolio.size(),
               " of them as fallback\nwrote ", arguments.output, "\n"));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_import_model(OptionList& list) {
  return prepare_with<ImportModelArguments, import_model>(list);
}

}  // namespace foretune::cli
