// Makes the scorer of a model file of any kind.
//
//   FORETUNE_TRY(const auto scorer, make_scorer(model));
//   FORETUNE_TRY(const auto pool, scorer->prepare(configs, model.fingerprint.hardware));
//
// Thread safety: free functions. scorer.h describes the thread safety of scorers and pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Makes the scorer of a model by its kind. Errors: kUnsupported for a kind unknown to this version,
// and those of forest_scorer(), network_scorer() and find_feature_table().
Result<std::unique_ptr<Scorer>> make_scorer(const Model& model);

// Describes the columns of a model's scores, in their order.
std::vector<ScoreColumn> columns_of(const Model& model);

// Returns the model that gives the scores of a column. That is the model itself, except for a kind
// that has one model for each of several metrics. The first column is the one that decides picks.
const Model& column_model(const Model& model, std::size_t column);

// Returns the pool that make_scorer(model) and its prepare() would return for these configs. The
// model has passed check_model(), so it is neither checked again nor copied where that takes long.
// Errors: kUnsupported for a kind unknown to this version and for forests that the engine cannot
// run (ForestEngine::create()).
Result<std::unique_ptr<PreparedPool>> prepare_checked(const Model& model, ConfigWords configs);

// Returns the scores of any configs of the model's schema, in the order given; they need not be in
// its pool. The model has passed check_model(). Preparing them takes milliseconds, however few they
// are. Errors: kMismatch for problems and configs that the model is not for, and those of
// prepare_checked().
Result<std::vector<double>> score_configs(const Model& model, const Problem& problem,
                                          std::span<const Config> configs);
// Returns the score of one config with the same bits, by walking through the trees: microseconds.
// For a model without networks the problem may be of another type that its feature table describes.
Result<double> score_config(const Model& model, const Problem& problem, const Config& config);

}  // namespace foretune
