// Evaluates picks among configs that no training measured: kernels that were built later, or
// another pipeline. Each split of problems trains one model on all configs, and one for every part
// of the configs that is left out. All pick for the problems of the other side, so neither the
// problem nor the part was seen.
//
//   FORETUNE_TRY(const auto splits, nested_folds(dataset, 5, seed));
//   FORETUNE_TRY(const auto parts, config_parts(dataset, "pipeline", seed));
//   FORETUNE_TRY(const auto out, evaluate_unseen_configs(dataset, splits, parts, recipe, options));
//
// Thread safety: that of the recipe. Cost: one training per split and part, and one per split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/evaluate/evaluate.h"

namespace foretune {

struct ConfigPart {
  std::string name;          // "pipeline=compv4", "part 2"
  std::vector<bool> is_out;  // by config id
};

// Returns the parts of the timed configs that `what` names. A parameter ("pipeline") gives a part
// for each of its values, several ("tile_m+tile_n") one for each combination, a value
// ("pipeline:compv4") that part alone. A number deals the configs at random to that many parts.
// Errors: kNotFound with the parameters or values that exist; kInvalidArgument when a part would
// hold all configs, and for fewer configs than parts.
Result<std::vector<ConfigPart>> config_parts(const Dataset& dataset, std::string_view what,
                                             std::uint64_t seed);

// Trains a model on the given data set. The configs that were left out must be candidates, too.
using CandidateRecipe = std::function<Result<Model>(
    const Dataset& training, std::span<const Config> left_out, const OuterSplit& split)>;

// Over the problems on which a config of the part was timed.
struct UnseenConfigs {
  std::string name;
  std::size_t configs = 0;  // left out
  // Picks among the left-out configs, beside the best of them: by the models that never saw them,
  // by those that did, and at random.
  PickerResult unseen;
  PickerResult seen;
  PickerResult random;
  // Picks among all configs beside the best of all, by the models that lack the part.
  PickerResult of_all;
  double picked_share = 0;  // of these picks that are of the part
};

struct UnseenEvaluation {
  std::vector<UnseenConfigs> parts;
  UnseenConfigs together;  // every problem once for every part
};

// Errors: those of the recipe with the names of split and part, and of rank_with_model();
// kInvalidArgument for parts of which no config was timed on a tested problem.
Result<UnseenEvaluation> evaluate_unseen_configs(const Dataset& dataset,
                                                 const std::vector<OuterSplit>& splits,
                                                 const std::vector<ConfigPart>& parts,
                                                 const CandidateRecipe& recipe,
                                                 const EvaluateOptions& options);

}  // namespace foretune
