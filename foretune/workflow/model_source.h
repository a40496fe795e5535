// The option that names a model, and the model: a file, or a directory with a model of each target
// as train --out-dir and the training of Composable Kernel's heuristics leave it. Models of others
// get their candidates here.
//
//   ModelArguments arguments;
//   arguments.visit(list);
//   FORETUNE_TRY(OpenedModels opened, arguments.open(invocation));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct OpenedModels {
  Model model;                // orders the configs
  std::vector<Model> others;  // of further targets, over the same configs
  // Labels that the directory gives to all its problems, by the name of the field.
  std::map<std::string, std::string> labels;
};

struct ModelArguments {
  std::string path;
  std::string kernels;
  std::string pool;
  std::string rank_by;
  std::string usual_pool;  // where there is no --pool, in place of ../../data; no option sets it

  // Declares --model, which it returns, and the options that a directory needs.
  Option& visit(OptionList& list);
  // True for a directory, and for a LightGBM text, which stands for the directory it lies in.
  [[nodiscard]] bool is_directory() const;
  // True for a directory of models of different problems and machines, in which a ModelFolder
  // chooses: none of its files has the name of a target, and no document says what they are for.
  [[nodiscard]] bool is_folder() const;
  // Errors: kNotFound for a directory of others without candidates, or without a model of the
  // target; those of the files.
  [[nodiscard]] Result<OpenedModels> open(const Invocation& invocation) const;

 private:
  [[nodiscard]] std::filesystem::path directory() const;
  [[nodiscard]] Result<OpenedModels> open_directory(const Invocation& invocation) const;
};

}  // namespace foretune::workflow
