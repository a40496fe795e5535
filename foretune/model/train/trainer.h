// Trains a model on a data set: computes features, deals folds by group, grows boosted trees
// (LightGBM), scores the held-out rows and makes one model file.
// Thread safety: independent trainings may run at once. The training thread calls the progress
// hook.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/split.h"
#include "foretune/features/feature_table.h"
#include "foretune/interop/trees/tree_model.h"
#include "foretune/model/model_file.h"
#include "foretune/model/train/cv_metrics.h"
#include "foretune/model/train/network_options.h"
#include "foretune/space/config.h"

namespace foretune {

// The quantity that a model learns from a measurement. Its name is stored in model files.
enum class Target : std::uint8_t {
  kRelativeLog = 0,  // ln(time / best time of the problem)
  kLog = 1,          // ln(time in ns)
  kTflops = 2,       // 10^12 operations a second
  kLatency = 3,      // milliseconds
  kBandwidth = 4,    // 10^9 bytes a second, every operand once
};
std::string_view to_string(Target target);
std::optional<Target> parse_target(std::string_view name);

// The loss that the trees minimise. docs/explanation/training.md has the formulas.
enum class TrainObjective : std::uint8_t {
  kRegression = 0,  // squared error, rows weighted by their distance from the problem's best
  kLambdaRank = 1,  // LightGBM's lambdarank; a problem is a query, its configs are the documents
  kRegret = 2,      // squared error, rows weighted by whether they are, or look like, a good pick
  kAuto = 3,        // chosen by settled_objective()
};
std::string_view to_string(TrainObjective objective);
std::optional<TrainObjective> parse_objective(std::string_view name);

struct GbdtOptions {
  std::uint32_t trees = 1000;  // at most; early stopping decides
  std::uint32_t leaves = 63;
  double learning_rate = 0.05;
  std::uint32_t min_rows_per_leaf = 10;
  double feature_fraction = 0.8;
  double bagging_fraction = 0.8;  // has an effect only with bagging_frequency > 0
  std::uint32_t bagging_frequency = 1;
  double lambda_l2 = 1.0;
  std::uint32_t max_bins = 255;
  std::uint32_t early_stopping_rounds = 50;
  // Number of forests trained at once, each by one thread. The trees do not depend on it.
  std::uint32_t threads = 2;
};

// Every round gives more weight to the problems with the worst picks, by models that did not see
// these problems. Only training problems take part: those of the held-out fold neither influence
// the weights nor get any.
struct MiningOptions {
  std::uint32_t rounds = 0;
  std::uint32_t folds = 3;   // of the training problems, in each round
  double hard_share = 0.25;  // of the problems
  double factor = 1.7;       // of their weight, in each round
  double most = 5;           // largest factor of a problem's weight over all rounds
};

struct TrainOptions {
  std::string feature_table;  // empty: the family's default
  Target target = Target::kRelativeLog;
  // Learns ln(1 + value) for tflops, latency and bandwidth.
  bool log_transform = true;
  // Cross-validates relative-log and log and keeps the one that ranks better.
  bool choose_target = false;
  TrainObjective objective = TrainObjective::kAuto;
  std::uint32_t folds = 5;  // for held-out scores; 0: none
  GroupKey group_key = GroupKey::kProblem;
  // Without it the folds only determine the number of trees: there are no held-out figures, and two
  // trainings instead of two more than folds.
  bool held_out = true;
  // Names of columns of the feature table that no tree may split on. The loss in quality shows how
  // much these columns contribute.
  std::vector<std::string> without_columns;
  // Name of a column of the feature table whose step function the trees begin with: each forest's
  // first tree splits on it alone, and the others learn what it leaves open. Every fold fits its
  // own on its training rows. Empty: none.
  std::string base_column;
  // Configs that become candidates of the model beside the measured ones.
  std::vector<Config> more_candidates;
  // No measured config is a candidate, unless it is among these or in the portfolio.
  bool only_more_candidates = false;
  // Number of forests with different samples of rows and features; their scores are averaged. More
  // forests pick a little better, above all with noisy times, and queries take longer in
  // proportion.
  std::uint32_t forests = 1;
  GbdtOptions gbdt;
  std::uint32_t portfolio_size = 16;
  // Candidates are the configs that were among so many fastest ones of a problem; 0: all that ran.
  // Fewer are ranked faster, and a config that never was fast is not picked by mistake.
  std::uint32_t best_of_problem = 0;
  std::uint64_t seed = 42;
  // Weight of a row by its distance from the problem's best, so that the fast configs are ranked
  // best: exp(-weight_decay * ln(time / best)), at least 0.05.
  double weight_decay = 0.5;
  // The weight_decay of TrainObjective::kRegret, where the distance is the smaller of the measured
  // one and the one predicted by the trees grown so far.
  double regret_decay = 4;
  MiningOptions mining;
  // A model to add trees to; borrowed. It must agree in everything that its trees depend on.
  const Model* warm_start = nullptr;
  std::uint32_t warm_start_trees = 500;  // added to every forest
  NetworkOptions network;                // of neural models
  // Curves of every network's training are written below; empty: nowhere.
  std::filesystem::path network_log_folder;
};

// Returns the objective of the options. It resolves kAuto to kRegression unless the target is
// certain to be kRelativeLog. Then it returns the objective of the model to continue, or kRegret
// for a new one.
TrainObjective settled_objective(const TrainOptions& options);

// Errors: kInvalidArgument for options that are invalid or contradict each other.
Status check_train_options(const TrainOptions& options);

// Returns the options with their settled objective. Errors: those of check_train_options().
Result<TrainOptions> settled_options(const TrainOptions& options);

struct TrainProgress {
  std::string stage;       // "fold 2 of 5"
  std::uint32_t tree = 0;  // or epoch
  std::uint32_t trees = 0;
  double loss = 0;
  std::string_view step = "tree";  // or "epoch", of networks
  double efficiency = 0;           // mean of the picks for the stop problems; 0: unknown
  double seconds_left = 0;         // of the stage, at most; 0: unknown
};

struct FeatureImportance {
  std::string feature;
  double gain = 0;           // of the objective, summed over the splits trained in this run
  std::uint64_t splits = 0;  // of all forests
};

// The figures of one fold or of all: those of Composable Kernel's trainer and ours.
struct FoldFigures {
  CvMetrics metrics;
  std::vector<std::pair<std::string, double>> ours;  // names as in the model card
  std::size_t train_rows = 0;
  std::size_t train_groups = 0;
  std::size_t held_out_groups = 0;
};

// The trained model and its held-out predictions.
struct TrainResult {
  Model model;
  std::vector<double> held_out_scores;  // per row of the data set, NaN if unused; lower is better
  std::vector<std::uint32_t> fold_of_problem;
  std::vector<std::pair<std::string, double>> metrics;  // names as in the model card
  std::vector<FoldFigures> folds;
  // The trees as they predict the target (or its logarithm): one forest, which has all trees of the
  // averaged forests with their share. The model's scores are `score_factor` times its predictions.
  TreeModel predictor;
  Target target = Target::kRelativeLog;
  bool log1p = false;  // the prediction is ln(1 + target)
  double score_factor = 1;
  std::vector<FeatureImportance> importances;  // most gain first
};

using ProgressHook = std::function<bool(const TrainProgress&)>;  // false: stop, kCancelled

// Errors: kInvalidArgument for invalid options and for data sets without a single success;
// kUnsupported for configs that no feature table describes and targets without a formula;
// kMismatch, with the differences, for a warm start from another kind of model; kCancelled by the
// hook.
Result<TrainResult> train_gbdt(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress = nullptr);

// One way to train a kind of model. A kind may have several, or none.
struct ModelTypeEntry {
  std::string name;  // "gbdt"
  std::string description;
  std::function<Result<TrainResult>(const Dataset& dataset, const TrainOptions& options,
                                    const ProgressHook& progress)>
      train;
};
// Returns the model types of the kinds of this build (model/model_kind.h), then the registered
// ones.
std::span<const ModelTypeEntry* const> model_types();
// Adds a model type for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_model_type(ModelTypeEntry entry);

// Returns a greedy portfolio: positions in `configs` of a few configs that together minimise the
// mean log regret over the problems (best single first).
std::vector<std::uint32_t> greedy_portfolio(const Dataset& dataset, std::size_t size);

}  // namespace foretune
