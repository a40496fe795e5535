// Scores by boosted trees: features, then the forests, averaged. With one forest a score is its
// prediction to the last bit, as LightGBM computes it.
//
//   FORETUNE_TRY(const auto scorer, forest_scorer(forests, table, residual_std));
//   FORETUNE_TRY(const auto pool, scorer->prepare(configs, hardware));
//
// Thread safety: immutable after creation. Cost: see scorer.h; for 4,608 candidates and 500 trees
// of 127 leaves a few milliseconds a problem, features included.
#pragma once

#include <memory>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/scorer.h"

namespace foretune {

// `table` must outlive the scorer and its pools (those of the registry live for ever).
// `residual_std` is part of every uncertainty; the spread of several forests adds to it. `isa`
// chooses the code, not the result.
// Errors: kMismatch when a forest's features are not the table's; kCorrupt for damaged forests;
// kInvalidArgument without a forest.
Result<std::unique_ptr<Scorer>> forest_scorer(std::vector<Forest> forests,
                                              const FeatureTable& table, double residual_std,
                                              CpuIsa isa = best_cpu_isa());

// Prepares a pool without a scorer, for forests that are valid and fit the table. They are not
// copied.
Result<std::unique_ptr<PreparedPool>> prepare_forests(const std::vector<Forest>& forests,
                                                      const FeatureTable& table,
                                                      double residual_std, ConfigWords configs,
                                                      const Hardware& hardware,
                                                      CpuIsa isa = best_cpu_isa());

}  // namespace foretune
