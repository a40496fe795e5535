// Evaluates a training recipe on one data set. Each split trains a model from scratch on one side,
// and the picks on the other sides are evaluated together like those of a single model. The recipe
// makes its own choices (number of trees, target) on the training side, so no choice depends on the
// reported problems.
//
//   FORETUNE_TRY(const auto splits, nested_folds(dataset, 5, seed));
//   FORETUNE_TRY(const CrossEvaluation out, cross_evaluate(dataset, splits, recipe, options));
//
// Thread safety: that of the recipe. Cost: one training per split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"

namespace foretune {

struct OuterSplit {
  std::string name;           // "fold 2", "k 4096 to 16384"
  std::vector<bool> is_test;  // by problem id; all others are for training
  bool leaves_out_machine = false;
};

// Returns splits by group, nearly equal in size. Errors: kInvalidArgument for fewer than 2 folds or
// fewer groups with a measured time than folds.
Result<std::vector<OuterSplit>> nested_folds(const Dataset& dataset, std::uint32_t folds,
                                             std::uint64_t seed, GroupKey key = GroupKey::kProblem);

// Returns splits that test extrapolation: the problems left out differ from the training problems.
// `dimension` is a field of the problem. A size leaves out the third of the problems with the
// largest values ("k", or "k:largest"), the smallest ("k:smallest") or those between ("k:middle"),
// equal values together. A label leaves out each of its values in turn ("layout"), or one
// ("layout:rcr"). "machine" leaves out each machine of Dataset::by_machine(), "machine:DIGEST" one.
// Errors: kNotFound with the nearest name, kInvalidArgument when one side would be
// empty.
Result<std::vector<OuterSplit>> leave_out(const Dataset& dataset, std::string_view dimension);

// Trains a model on the given data set.
using TrainRecipe = std::function<Result<Model>(const Dataset& training, const OuterSplit& split)>;

struct SplitResult {
  std::string name;
  std::size_t training_problems = 0;
  std::size_t test_problems = 0;
  // Number of test problems whose group is also on the training side: none with folds; when a label
  // is left out, the same sizes with other labels.
  std::size_t shared_groups = 0;
  double mean_efficiency = 0;
  double p10_efficiency = 0;
  double min_efficiency = 0;
  double top5_measured_efficiency = 0;
};

struct CrossEvaluation {
  Evaluation evaluation;  // of all test problems together
  std::vector<SplitResult> splits;
};

// Evaluates the recipe over the splits. The baselines of a problem learn from the training side of
// its split. At most one split may test a problem. Errors: those of the recipe, with the split's
// name; those of rank_with_model() and evaluate().
Result<CrossEvaluation> cross_evaluate(const Dataset& dataset,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options);

// Evaluates by an objective with one target: models are trained on all of `dataset`, and the picks
// are judged on its objective_view(). Errors also: those of DatasetJudge::create().
Result<CrossEvaluation> cross_evaluate(const Dataset& dataset, const Objective& objective,
                                       const DefaultConfigs& default_configs,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options);

}  // namespace foretune
