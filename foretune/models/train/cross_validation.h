// Folds by group, the number of trees, held-out predictions, mining, and the final forests.
// Internal.
// Thread safety: one training at a time per process (LightGBM keeps process-wide state).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/models/train/boosting.h"
#include "foretune/models/train/held_out.h"
#include "foretune/models/train/targets.h"
#include "foretune/models/train/trainer.h"
#include "foretune/models/train/training_set.h"

namespace foretune::train_internal {

// Folds dealt to the problems of the data set; those without an example are in fold 0.
struct Folds {
  std::uint32_t count = 0;  // 0: too few groups, or none wanted
  std::vector<std::uint32_t> of_problem;
};
Folds deal_folds(const Dataset& dataset, const TrainingSet& set, const TrainOptions& options);

// Groups among the problems of these examples.
std::size_t count_groups(const Dataset& dataset, const TrainingSet& set,
                         std::span<const std::uint32_t> rows, GroupKey key);

struct CrossValidated {
  std::vector<double> predictions;  // per example; empty without figures
  std::uint32_t trees = 0;          // for the final model
};

struct FinalForests {
  std::vector<Forest> forests;  // predicting what is learned
  std::vector<double> gains;    // per column, of the trees that were added
};

class ForestTrainer {
 public:
  // Everything is borrowed.
  ForestTrainer(const Dataset& dataset, const TrainingSet& set, const TrainOptions& options,
                const Folds& folds, const ProgressHook& progress)
      : dataset_(dataset), set_(set), options_(options), folds_(folds), progress_(progress) {}

  // The number of trees is settled on folds 0 and 1, each for the others, so that no fold's figures
  // rest on a number that was chosen on it. Needs at least two folds.
  [[nodiscard]] Result<CrossValidated> cross_validate(const Learned& learned) const;

  // Held-out predictions of one fold, with the number of trees that suits it best: for comparing
  // options with each other, not for figures.
  [[nodiscard]] Result<Boosted> best_of_fold(const Learned& learned, std::uint32_t fold) const;

  // Trees for all examples, added to the forests of `start` (predictions of what is learned) when
  // it is not empty.
  [[nodiscard]] Result<FinalForests> final_forests(const Learned& learned, std::uint32_t trees,
                                                   const std::vector<Forest>& start) const;

  // The examples in and outside of a fold.
  [[nodiscard]] Rows rows_of_fold(std::uint32_t fold) const;

 private:
  [[nodiscard]] BoostRun run(const Learned& learned, std::string stage,
                             std::uint32_t forest = 0) const;
  // Factors of the problems' weights, from problems of `rows` alone; empty without mining.
  [[nodiscard]] Result<std::vector<float>> mine(const Learned& learned,
                                                const std::vector<std::uint32_t>& rows,
                                                std::uint32_t trees,
                                                const std::string& stage) const;

  const Dataset& dataset_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  const Folds& folds_;
  const ProgressHook& progress_;
};

}  // namespace foretune::train_internal
