// Folds by group, the number of trees, held-out predictions, mining, and the final forests.
// Internal.
// Thread safety: independent trainings may run at once; each runs its forests side by side.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/held_out.h"
#include "foretune/model/train/internal/boosting.h"
#include "foretune/model/train/targets.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

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
  // options with each other, not for figures. `weight` is that of the examples.
  [[nodiscard]] Result<Boosted> best_of_fold(const Learned& learned, std::uint32_t fold,
                                             std::span<const float> weight) const;

  // Trees for all examples, added to the forests of `start` (predictions of what is learned) when
  // it is not empty.
  [[nodiscard]] Result<FinalForests> final_forests(const Learned& learned, std::uint32_t trees,
                                                   const std::vector<Forest>& start) const;

  // The examples in and outside of a fold.
  [[nodiscard]] Rows rows_of_fold(std::uint32_t fold) const;

 private:
  [[nodiscard]] BoostRun run(const Learned& learned, std::string stage, std::uint32_t forest,
                             const ProgressHook& progress) const;
  // On as many threads as the options allow.
  [[nodiscard]] Status side_by_side(
      std::size_t count, const std::function<Status(std::size_t, const ProgressHook&)>& task) const;
  // With trees[1] trees for fold 0 and trees[0] for the others.
  [[nodiscard]] Result<std::vector<double>> held_out_predictions(
      const Learned& learned, const std::array<std::uint32_t, 2>& trees) const;
  // Factors of the problems' weights, from problems of `rows` alone; empty without mining.
  [[nodiscard]] Result<std::vector<float>> mine(const Learned& learned,
                                                const std::vector<std::uint32_t>& rows,
                                                std::uint32_t trees, const std::string& stage,
                                                const ProgressHook& progress) const;

  const Dataset& dataset_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  const Folds& folds_;
  const ProgressHook& progress_;
};

}  // namespace foretune::train_internal
