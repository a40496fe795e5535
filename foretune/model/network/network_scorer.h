// Scores by neural networks: computes the features, runs the networks and averages their outputs.
// The output of a network has the bits of predict_reference() on every CPU.
//
//   FORETUNE_TRY(const auto scorer, network_scorer(networks, table, fields, std));
//   FORETUNE_TRY(const auto pool, scorer->prepare(configs, hardware));
//
// For a chain the pool keeps the contribution of the configs to the first layer, for two towers the
// output of the config's whole tower.
// Thread safety: immutable after creation. Cost: docs/benchmarks.md. For 1,206 candidates, a chain
// of 340,000 weights takes some 4 ms on one core, two towers some 10 us.
#pragma once

#include <memory>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/network/network.h"
#include "foretune/model/scorer.h"

namespace foretune {

// `table` must outlive the scorer and its pools. `residual_std` is part of every uncertainty; the
// variance among several networks adds to it. `isa` chooses the code, not the result.
// Errors: those of Network::validate(); kInvalidArgument without a network.
Result<std::unique_ptr<Scorer>> network_scorer(std::vector<Network> networks,
                                               const FeatureTable& table, std::size_t fields,
                                               double residual_std, CpuIsa isa = best_cpu_isa());

// Prepares a pool without a scorer, for networks that are valid and fit the table. They are not
// kept.
Result<std::unique_ptr<PreparedPool>> prepare_networks(const std::vector<Network>& networks,
                                                       const FeatureTable& table,
                                                       double residual_std, ConfigWords configs,
                                                       const Hardware& hardware,
                                                       CpuIsa isa = best_cpu_isa());

}  // namespace foretune
