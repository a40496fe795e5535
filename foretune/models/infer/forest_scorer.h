// Scores by boosted trees: features, then the forests, averaged. With one forest a score is its
// prediction to the last bit, as LightGBM computes it.
//
//   FORETUNE_TRY(const auto scorer, make_scorer(model));
//   FORETUNE_TRY(const auto pool, scorer->prepare(words, width, model.fingerprint.hardware));
//
// Thread safety: immutable after creation. Cost: see scorer.h; for 4,608 candidates and 500 trees
// of 127 leaves a few milliseconds a problem, features included.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/models/infer/forest.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/infer/scorer.h"

namespace foretune {

class ForestScorer final : public Scorer {
 public:
  // `table` must outlive the scorer and its pools (those of the registry live for ever).
  // `residual_std` is part of every uncertainty; the spread of several forests adds to it. `isa`
  // chooses the code, not the result.
  // Errors: kMismatch when a forest's features are not the table's; kCorrupt for damaged forests.
  static Result<std::unique_ptr<ForestScorer>> create(std::vector<Forest> forests,
                                                      const FeatureTable& table,
                                                      double residual_std,
                                                      CpuIsa isa = best_cpu_isa());

  std::string_view kind() const override { return "gbdt"; }
  Result<std::unique_ptr<PreparedPool>> prepare(std::span<const std::int32_t> words,
                                                std::size_t width,
                                                const Hardware& hardware) const override;

 private:
  ForestScorer() = default;
  std::vector<Forest> forests_;
  const FeatureTable* table_ = nullptr;
  double residual_std_ = 0;
  CpuIsa isa_ = CpuIsa::kGeneric;
};

// The scorer of a model, by its kind. Errors: kUnsupported for a kind unknown to this version, and
// those of ForestScorer::create and of finding the feature table.
Result<std::unique_ptr<Scorer>> make_scorer(const Model& model);

// What make_scorer(model) and its prepare() give for configs of `width` words each, of a model that
// has passed check_model(): the forests are neither looked through again nor copied. Errors:
// kUnsupported for a kind unknown to this version or what the engine does not have
// (ForestEngine::create()).
Result<std::unique_ptr<PreparedPool>> prepare_checked(const Model& model,
                                                      std::span<const std::int32_t> words,
                                                      std::size_t width);

// Scores of any configs of the model's schema, in its pool or not, in the order given. The model
// has passed check_model(). Making them ready takes milliseconds, however few they are. Errors:
// kMismatch for problems and configs that the model is not for, and those of prepare_checked().
Result<std::vector<double>> score_configs(const Model& model, const Problem& problem,
                                          std::span<const Config> configs);
// The same of one, by walking through its trees: microseconds, and the same bits.
Result<double> score_config(const Model& model, const Problem& problem, const Config& config);

}  // namespace foretune
