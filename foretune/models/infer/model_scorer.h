// The scorer of a model file, whatever its kind.
//
//   FORETUNE_TRY(const auto scorer, make_scorer(model));
//   FORETUNE_TRY(const auto pool, scorer->prepare(configs, model.fingerprint.hardware));
//
// Thread safety: free functions; scorers and pools as scorer.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/infer/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// The scorer of a model, by its kind. Errors: kUnsupported for a kind unknown to this version, and
// those of ForestScorer::create, NetworkScorer::create and of finding the feature table.
Result<std::unique_ptr<Scorer>> make_scorer(const Model& model);

// Returns what the columns of a model's scores are of, in their order.
std::vector<ScoreColumn> columns_of(const Model& model);

// The model that the scores of a column are of: the model itself, but for a kind that has a model
// for each of several metrics. The first column is the one that scores are of.
const Model& column_model(const Model& model, std::size_t column);

// What make_scorer(model) and its prepare() give for these configs, of a model that
// has passed check_model(): the model is neither looked through again nor copied where that takes
// long. Errors: kUnsupported for a kind unknown to this version or what the engine does not have
// (ForestEngine::create()).
Result<std::unique_ptr<PreparedPool>> prepare_checked(const Model& model, ConfigWords configs);

// Scores of any configs of the model's schema, in its pool or not, in the order given. The model
// has passed check_model(). Making them ready takes milliseconds, however few they are. Errors:
// kMismatch for problems and configs that the model is not for, and those of prepare_checked().
Result<std::vector<double>> score_configs(const Model& model, const Problem& problem,
                                          std::span<const Config> configs);
// The same of one, by walking through its trees: microseconds, and the same bits. Without networks
// the problem may be of another type that the model's feature table describes.
Result<double> score_config(const Model& model, const Problem& problem, const Config& config);

}  // namespace foretune
