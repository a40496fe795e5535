// How trees are to be trained, as train and evaluate are asked for it.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/models/train/trainer.h"
#include "tools/foretune/options.h"

namespace foretune::cli {

struct RecipeArguments {
  std::string target = "relative-log";
  std::string objective = "auto";
  std::string features;
  std::int64_t folds = 5;
  std::int64_t threads = 0;
  TrainOptions defaults;
  std::int64_t trees = defaults.gbdt.trees;
  std::int64_t leaves = defaults.gbdt.leaves;
  std::optional<double> learning_rate;
  std::int64_t forests = defaults.forests;

  // What target and folds are for is the command's to say.
  void visit(OptionList& list, std::string target_help, std::string folds_help);
  // What trees alone have.
  void visit_trees(OptionList& list);
  // What was given over the defaults. Errors: kInvalidArgument for a learning rate that is none.
  [[nodiscard]] Result<TrainOptions> options(const GlobalOptions& global) const;
};

}  // namespace foretune::cli
