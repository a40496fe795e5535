// Scores by boosted trees: features, then the forests, averaged. With one forest a score is its
// prediction to the last bit, as LightGBM computes it.
//
//   FORETUNE_TRY(const auto scorer, ForestScorer::create(forests, table, residual_std));
//   FORETUNE_TRY(const auto pool, scorer->prepare(configs, hardware));
//
// Thread safety: immutable after creation. Cost: see scorer.h; for 4,608 candidates and 500 trees
// of 127 leaves a few milliseconds a problem, features included.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/scorer.h"

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

  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& hardware) const override;
  // The same of forests that are valid and fit the table: neither looked through nor copied.
  static Result<std::unique_ptr<PreparedPool>> prepare_checked(
      const std::vector<Forest>& forests, const FeatureTable& table, double residual_std,
      ConfigWords configs, const Hardware& hardware, CpuIsa isa = best_cpu_isa());

 private:
  ForestScorer() = default;
  std::vector<Forest> forests_;
  const FeatureTable* table_ = nullptr;
  double residual_std_ = 0;
  CpuIsa isa_ = CpuIsa::kGeneric;
};

}  // namespace foretune
