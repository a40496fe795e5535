// How good is a way of training, judged from one data set: it is split again and again, a model is
// trained on one side from the beginning, and its picks on the other side are put together and
// evaluated like those of a single model. What the recipe chooses for itself (number of trees,
// target) it chooses on the training side, so nothing is chosen on what is reported.
//
//   FORETUNE_TRY(const auto splits, nested_folds(dataset, 5, seed));
//   FORETUNE_TRY(const CrossEvaluation out, cross_evaluate(dataset, splits, recipe, options));
//
// Thread safety: as the recipe. Cost: one training a split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/evaluate.h"

namespace foretune {

struct OuterSplit {
  std::string name;           // "fold 2", "k 4096 to 16384"
  std::vector<bool> is_test;  // by problem id; all others are trained on
};

// Splits by group, near equal in size. Errors: kInvalidArgument for fewer than 2 folds or fewer
// groups with a measured time than folds.
Result<std::vector<OuterSplit>> nested_folds(const Dataset& dataset, std::uint32_t folds,
                                             std::uint64_t seed);

// Extrapolation: what is left out is unlike what is learned from. `dimension` is a field of the
// problem: a size leaves out the third of the problems with the largest values ("k", or
// "k:largest"), the smallest ("k:smallest") or those between ("k:middle"), equal values together; a
// label leaves out each of its values in turn ("layout"), or one ("layout:rcr"). Errors:
// kNotFound with the nearest name, kInvalidArgument when one side would be empty.
Result<std::vector<OuterSplit>> leave_out(const Dataset& dataset, std::string_view dimension);

// Trains a model on the data set that it is given.
using TrainRecipe = std::function<Result<Model>(const Dataset& training, const OuterSplit& split)>;

struct SplitResult {
  std::string name;
  std::size_t training_problems = 0;
  std::size_t test_problems = 0;
  // Test problems whose group stands on the training side too: never with folds; when a label is
  // left out, the same sizes with other labels.
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

// The baselines of a problem learn from the training side of its split. A problem is tested by one
// split at most. Errors: those of the recipe, with the split's name; those of ranking and
// evaluating.
Result<CrossEvaluation> cross_evaluate(const Dataset& dataset,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options);

// The same by an objective with one target: models are trained on whatever `dataset` holds, and the
// picks are judged on its objective_view(). Errors also: those of DatasetJudge::create().
Result<CrossEvaluation> cross_evaluate(const Dataset& dataset, const Objective& objective,
                                       const DefaultConfigs& default_configs,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options);

// A table of the splits, to stand before the report of the evaluation; and the report as JSON with
// "splits".
std::string splits_text(const CrossEvaluation& result);
std::string cross_report_json(const CrossEvaluation& result, const std::string& name,
                              const std::string& command, const Fingerprint& machine);

}  // namespace foretune
