// Trains a model from a data set: features, folds by group, boosted trees (LightGBM), held-out
// scores, one model file.
// Thread safety: one training at a time per process (LightGBM keeps process-wide state).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_file.h"

namespace foretune {

// Stored in model cards.
enum class Target : std::uint8_t {
  kRelativeLog = 0,  // ln(time / best time of the problem)
  kLog = 1,          // ln(time in ns)
};

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
  std::uint32_t threads = 2;
};

struct TrainOptions {
  std::string feature_table;  // empty: the family's default
  Target target = Target::kRelativeLog;
  bool choose_target = false;  // cross-validate both targets and keep the one that ranks better
  std::uint32_t folds = 5;     // held-out scores; 0: none
  // Forests that differ in their draws of rows and features; scores are averaged. More pick a
  // little better, the more so the noisier the times, and take that much longer to ask.
  std::uint32_t forests = 1;
  GbdtOptions gbdt;
  std::uint32_t portfolio_size = 16;
  std::uint64_t seed = 42;
  // Weight of a row by its distance from the problem's best, so that the fast configs are ranked
  // best: exp(-weight_decay * ln(time / best)), at least 0.05.
  double weight_decay = 0.5;
};

struct TrainProgress {
  std::string stage;  // "fold 2 of 5"
  std::uint32_t tree = 0;
  std::uint32_t trees = 0;
  double loss = 0;
};

// Held-out prediction of every row used (same order as the data set's rows; NaN where not used).
struct TrainResult {
  Model model;
  std::vector<double> held_out_scores;  // per row of the data set
  std::vector<std::uint32_t> fold_of_problem;
  std::vector<std::pair<std::string, double>> metrics;  // names as in the model card
};

using ProgressHook = std::function<bool(const TrainProgress&)>;  // false: stop, kCancelled

Result<TrainResult> train_gbdt(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress = nullptr);

struct ModelTypeEntry {
  std::string_view name;  // "gbdt"
  std::string_view description;
  Result<TrainResult> (*train)(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress);
};
std::span<const ModelTypeEntry> model_types();

// A greedy portfolio: positions in `configs` of a few configs that together minimise the mean log
// regret over the problems (best single first). Used by trainer and baselines.
std::vector<std::uint32_t> greedy_portfolio(const Dataset& dataset, std::size_t size);

}  // namespace foretune
