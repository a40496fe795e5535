// Options of train and evaluate for growing trees.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

// Counts of trees, rows and threads are stored in 32 bits.
inline constexpr std::int64_t kMaxCount = 2'147'483'647;

// Help of --group-key.
inline constexpr std::string_view kGroupKeyHelp =
    "keep problems in one fold that differ in layout and types only (problem); that have the same "
    "main sizes (sizes: m, n, k, for convolutions all but strides and pads); or that have the same "
    "weights (weights: n, k, for convolutions channels, groups, filter, strides and dilations)";

struct RecipeArguments {
  std::string target = "relative-log";
  std::string objective = "auto";
  std::string features;
  std::string base_feature;
  std::vector<std::string> without_features;
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
