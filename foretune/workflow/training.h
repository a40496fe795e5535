// The options of training, and the training itself, from data sets to model files. Shared by the
// command line and the Python package, whose keywords are these options. Nothing here prints.
//
//   TrainArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const Training training, train(arguments, invocation, hooks));
//   FORETUNE_TRY_STATUS(write_trained(arguments, training));
//
// Thread safety: one thread at a time may use a set of arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/hyper_search.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/data_filter.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/network_arguments.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"
#include "foretune/workflow/recipe.h"

namespace foretune::workflow {

struct TrainArguments {
  std::string data_dir;
  std::vector<std::string> file_extensions;
  std::string dataset;
  std::string model;
  std::string out_dir;
  bool write_lightgbm = false;
  std::string model_type = "gbdt";
  std::string log_dir;
  std::string json;
  std::string targets = "time";
  std::string metrics;
  DataFilter filter;
  std::string kernels;
  bool only_kernels = false;
  PayloadArguments payloads;
  RecipeArguments recipe;
  bool no_log_transform = false;
  std::string group_key = "problem";
  std::string warm_start;
  TrainOptions defaults;
  double bagging_fraction = defaults.gbdt.bagging_fraction;
  double feature_fraction = defaults.gbdt.feature_fraction;
  std::int64_t min_rows_per_leaf = defaults.gbdt.min_rows_per_leaf;
  std::int64_t portfolio_size = defaults.portfolio_size;
  std::int64_t best_of_problem = defaults.best_of_problem;
  std::optional<double> weight_decay;
  double row_weight_decay = defaults.weight_decay;
  NetworkArguments network;
  double regret_decay = defaults.regret_decay;
  double lambda_l2 = defaults.gbdt.lambda_l2;
  std::optional<std::int64_t> warm_start_trees;
  std::int64_t mining_rounds = defaults.mining.rounds;
  std::string tune_budget;
  bool fast = false;

  // Declares the data to read, the files to write, and everything that follows.
  void visit(OptionList& list);
  // Declares what a training depends on beside its data.
  void visit_training(OptionList& list);

 private:
  void visit_trees(OptionList& list);
  [[nodiscard]] Condition is_gbdt() const;
  [[nodiscard]] bool has_trees() const;
  [[nodiscard]] bool may_minimise_regret() const;
};

struct TrainHooks {
  ProgressHook on_progress;  // may be empty; false stops the training with kCancelled
  std::function<void(const HyperSearch&)> on_search;  // of --tune-budget; may be empty
};

// One model for each target, in the order of --targets.
struct Training {
  Dataset dataset;  // what the models learned from, without repeats, told apart by machine
  std::vector<TrainOptions> options;  // of each target; those found with --tune-budget
  std::vector<TrainResult> results;
  double seconds = 0;
};

// Reads the data sets that the arguments name, with the known facts of payloads. Errors: those of
// reading.
Result<Dataset> read_training(const TrainArguments& arguments, const Invocation& invocation);

// Reads the data sets that the arguments name and trains on them. Measurements of several machines
// make a joint model (model/joint_model.h). Errors: kInvalidArgument for
// options that make no sense, kMismatch for a validation set; those of reading and training.
Result<Training> train(const TrainArguments& arguments, const Invocation& invocation,
                       const TrainHooks& hooks);
// Trains on a data set at hand. Errors: as above.
Result<Training> train_on(Dataset dataset, const TrainArguments& arguments,
                          const Invocation& invocation, const TrainHooks& hooks);

// Paths of what write_trained() wrote; each may be empty.
struct TrainedFiles {
  std::string model;
  std::string folder;
};
// Writes --model and --out-dir. Without both it writes matmul_model.ftm. Errors: kIo.
Result<TrainedFiles> write_trained(const TrainArguments& arguments, const Training& training);

}  // namespace foretune::workflow
