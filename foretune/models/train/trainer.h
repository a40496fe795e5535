// Trains a model from a data set: features, folds by group, boosted trees (LightGBM), held-out
// scores, one model file.
// Thread safety: independent trainings may run at once. The progress hook is called by the thread
// that trains.
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
#include "foretune/models/exchange/tree_model.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/train/cv_metrics.h"
#include "foretune/models/train/network_options.h"

namespace foretune {

// What a model learns of a measurement. The name is stored in model files.
enum class Target : std::uint8_t {
  kRelativeLog = 0,  // ln(time / best time of the problem)
  kLog = 1,          // ln(time in ns)
  kTflops = 2,       // 10^12 operations a second
  kLatency = 3,      // milliseconds
  kBandwidth = 4,    // 10^9 bytes a second, every operand once
};
std::string_view to_string(Target target);
std::optional<Target> parse_target(std::string_view name);

// What the trees minimise. docs/training.md has the formulas.
enum class TrainObjective : std::uint8_t {
  kRegression = 0,  // squared error, rows weighted by their distance from the problem's best
  kLambdaRank = 1,  // LightGBM's lambdarank, a problem's configs being the documents of a query
  kRegret = 2,      // squared error, rows weighted by whether they are, or look like, a good pick
  kAuto = 3,        // what settled_objective() says
};
std::string_view to_string(TrainObjective objective);
std::optional<TrainObjective> parse_objective(std::string_view name);

struct GbdtOptions {
  std::uint32_t trees = 1000;  // at most; early stopping decides
  std::uint32_t leaves = 63;
  double learning_rate = 0.05;
  std::uint32_t min_rows_per_leaf = 10;
  double feature_fraction = 0.8;
  double bagging_fraction = 0.8;  // with bagging_frequency > 0, or it would do nothing
  std::uint32_t bagging_frequency = 1;
  double lambda_l2 = 1.0;
  std::uint32_t max_bins = 255;
  std::uint32_t early_stopping_rounds = 50;
  // Forests trained side by side, each by one thread; the trees do not depend on it.
  std::uint32_t threads = 2;
};

// Problems on which the picks of models that did not see them are worst get more weight, again and
// again. Only problems that are trained on take part: those of the fold that is being held out
// neither choose the weights nor get any.
struct MiningOptions {
  std::uint32_t rounds = 0;
  std::uint32_t folds = 3;   // of the training problems, in every round
  double hard_share = 0.25;  // of the problems
  double factor = 1.7;       // of their weight, in every round
  double most = 5;           // factor of a problem's weight over all rounds
};

struct TrainOptions {
  std::string feature_table;  // empty: the family's default
  Target target = Target::kRelativeLog;
  // Of tflops, latency and bandwidth: learn ln(1 + value).
  bool log_transform = true;
  // Cross-validate relative-log and log and keep the one that ranks better.
  bool choose_target = false;
  TrainObjective objective = TrainObjective::kAuto;
  std::uint32_t folds = 5;  // held-out scores; 0: none
  GroupKey group_key = GroupKey::kProblem;
  // Without it the folds only settle the number of trees: no figures, two trainings instead of
  // folds and two.
  bool held_out = true;
  // Columns of the feature table, by name, that no tree may split: what they are worth is what is
  // lost without them.
  std::vector<std::string> without_columns;
  // Forests that differ in their draws of rows and features; scores are averaged. More pick a
  // little better, the more so the noisier the times, and take that much longer to ask.
  std::uint32_t forests = 1;
  GbdtOptions gbdt;
  std::uint32_t portfolio_size = 16;
  std::uint64_t seed = 42;
  // Weight of a row by its distance from the problem's best, so that the fast configs are ranked
  // best: exp(-weight_decay * ln(time / best)), at least 0.05.
  double weight_decay = 0.5;
  // The same of TrainObjective::kRegret, where the distance is the smaller of the measured one and
  // the one that the trees grown so far see.
  double regret_decay = 4;
  MiningOptions mining;
  // A model to add trees to; borrowed. It must agree in everything that gives its trees a meaning.
  const Model* warm_start = nullptr;
  std::uint32_t warm_start_trees = 500;  // added to every forest
  NetworkOptions network;                // of neural models
  // Curves of every network's training are written below; empty: nowhere.
  std::filesystem::path network_log_folder;
};

// The objective that is asked for. kAuto is kRegression where the target is not certain to be
// kRelativeLog; where it is, that of the model that is continued, and kRegret for a new one.
TrainObjective settled_objective(const TrainOptions& options);

// Errors: kInvalidArgument for options that make no sense, or not together.
Status check_train_options(const TrainOptions& options);

struct TrainProgress {
  std::string stage;       // "fold 2 of 5"
  std::uint32_t tree = 0;  // or epoch
  std::uint32_t trees = 0;
  double loss = 0;
  std::string_view step = "tree";  // or "epoch", of networks
  double efficiency = 0;    // of the picks for the problems that decide when to stop; 0: unknown
  double seconds_left = 0;  // of the stage, at most; 0: unknown
};

struct FeatureImportance {
  std::string feature;
  double gain = 0;           // of the objective, summed over the splits trained in this run
  std::uint64_t splits = 0;  // of all forests
};

// One fold, or all: their figures and ours.
struct FoldFigures {
  CvMetrics metrics;
  std::vector<std::pair<std::string, double>> ours;  // names as in the model card
  std::size_t train_rows = 0;
  std::size_t train_groups = 0;
  std::size_t held_out_groups = 0;
};

// Held-out prediction of every row used (same order as the data set's rows; NaN where not used).
struct TrainResult {
  Model model;
  std::vector<double> held_out_scores;  // per row of the data set; lower is better
  std::vector<std::uint32_t> fold_of_problem;
  std::vector<std::pair<std::string, double>> metrics;  // names as in the model card
  std::vector<FoldFigures> folds;
  // The trees as they predict the target (or its logarithm): one forest, of the averaged ones all
  // trees with their share. The model's scores are `score_factor` times as much.
  TreeModel predictor;
  Target target = Target::kRelativeLog;
  bool log1p = false;  // the prediction is ln(1 + target)
  double score_factor = 1;
  std::vector<FeatureImportance> importances;  // most gain first
};

using ProgressHook = std::function<bool(const TrainProgress&)>;  // false: stop, kCancelled

// Errors: kInvalidArgument for options that make no sense and data sets without a single success;
// kUnsupported for configs that no feature table describes and targets without a formula; kMismatch
// with what differs for a warm start from another kind of model; kCancelled by the hook.
Result<TrainResult> train_gbdt(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress = nullptr);

// A way to train a kind of model; a kind may have several, or none.
struct ModelTypeEntry {
  std::string name;  // "gbdt"
  std::string description;
  Result<TrainResult> (*train)(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress);
};
// Those of the kinds of this build (models/infer/model_kind.h), then those that were added.
std::span<const ModelTypeEntry* const> model_types();
// Adds one for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_model_type(ModelTypeEntry entry);

// A greedy portfolio: positions in `configs` of a few configs that together minimise the mean log
// regret over the problems (best single first).
std::vector<std::uint32_t> greedy_portfolio(const Dataset& dataset, std::size_t size);

}  // namespace foretune
