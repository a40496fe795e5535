// Searches the options of the trees by group folds: random draws, the better third of which goes on
// to more folds (successive halving; Jamieson and Talwalkar 2016, in brackets of nine).
//
//   FORETUNE_TRY(const HyperSearch found,
//                search_hyper_parameters(dataset, options, {.trials = 30}, progress));
//   FORETUNE_TRY(const TrainResult result, train_gbdt(dataset, found.best, progress));
//
// The folds of the search are dealt anew, so that the figures of the training that follows rest on
// other ones. They still see the same problems: of many trials the best looks a little better than
// it is.
// Thread safety: one training at a time per process. Cost: about 1.8 trainings a trial, and one for
// every fold of the options given.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

struct HyperBudget {
  std::uint32_t trials = 20;  // beside the options given
  // Asked before every training; true ends the search with what is known then. With it two searches
  // are the same only when it says the same. May be empty.
  std::function<bool()> is_spent;
};

struct HyperTrial {
  GbdtOptions gbdt;
  double weight_decay = 0;
  std::uint32_t folds = 0;     // that it was tried on
  double mean_efficiency = 0;  // of the picks on them; the number of trees suits each fold
};

struct HyperSearch {
  TrainOptions best;  // the options given, but for those of the best trial on all folds
  // The first is of the options given. Those that went on to all folds come first, best first.
  std::vector<HyperTrial> trials;
  std::uint32_t folds = 0;
};

// Drawn: leaves 15 to 255, learning_rate 0.02 to 0.2, min_rows_per_leaf 2 to 50 and lambda_l2 0.01
// to 10 (uniform in their logarithms), feature_fraction 0.4 to 1, bagging_fraction 0.5 to 1,
// weight_decay 0 to 4. Same data, options and number of trials: same result. Errors:
// kInvalidArgument without trials or with fewer than two groups; those of train_gbdt.
Result<HyperSearch> search_hyper_parameters(const Dataset& dataset, const TrainOptions& options,
                                            const HyperBudget& budget,
                                            const ProgressHook& progress = nullptr);

}  // namespace foretune
