// Options of train and evaluate for growing trees.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

// Counts of trees, rows and threads are stored in 32 bits.
inline constexpr std::int64_t kMaxCount = 2'147'483'647;

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

  // The commands give the help of --target and --folds, which they use differently.
  void visit(OptionList& list, std::string target_help, std::string folds_help);
  // Declares the options that only trees have.
  void visit_trees(OptionList& list);
  // Returns the defaults with the given options. Errors: kInvalidArgument for a learning rate that
  // makes no sense.
  [[nodiscard]] Result<TrainOptions> options(const Invocation& invocation) const;
};

}  // namespace foretune::workflow
