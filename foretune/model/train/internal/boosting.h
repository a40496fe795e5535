// One boosting run: rows in, trees out, by one of the objectives. Internal.
// Thread safety: independent runs may go on at once, each on the thread that calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/train/internal/lightgbm_booster.h"
#include "foretune/model/train/targets.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

// Examples by number.
struct Rows {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> valid;
};

// A run, but for its rows.
struct BoostRun {
  const TrainingSet& set;
  const Learned& learned;
  const TrainOptions& options;
  std::span<const float> weight;  // per example
  // Per example, prediction to start from. When empty, a tree of the set's base column if there is
  // one, else the mean.
  std::span<const double> base;
  std::span<const float> problem_weight;  // factor of the rows' weights; empty: none
  std::uint64_t seed = 0;
  std::string stage;
  const ProgressHook& progress;
};

struct Boosted {
  std::unique_ptr<Booster> booster;
  double offset = 0;  // what the run started from, bases apart; not in the booster
  Forest base;        // the tree of the base column, without trees when none was fitted; neither
  std::uint32_t trees = 0;                // in the booster
  std::uint32_t best_trees = 0;           // by the loss of the validation rows
  std::vector<double> valid_predictions;  // in the order of `valid`
};

// With `early_stopping`, stops when the validation loss has not improved for a while. The rows of
// `rows` may come in any order; those of a problem are brought together where the objective wants
// it. Errors: kCancelled; kUnsupported for problems of more rows than lambdarank takes.
Result<Boosted> boost(const BoostRun& run, const Rows& rows, std::uint32_t trees,
                      bool early_stopping);

// Relevance of a row for lambdarank, 0 to 30: 30 times the efficiency above 0.5, doubled.
std::int32_t relevance_grade(double relative_log);

}  // namespace foretune::train_internal
