// The body of the kind "network": neural networks whose predictions are averaged.
//
//   set_networks(model, std::move(networks));
//   for (const Network& network : networks_of(model)) ...
//
// Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_columns.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/network/network.h"

namespace foretune {

using NetworkBody = PartsBody<Network>;

// None where the model is of another kind, or was read without its body.
const std::vector<Network>& networks_of(const Model& model);
// Makes the model one of networks.
void set_networks(Model& model, std::vector<Network> networks);

// For kinds that have networks among others. `share` is stored beside them.
void put_networks(ByteWriter& writer, double share, const std::vector<Network>& networks);
struct ReadNetworks {
  double share = 0;
  std::vector<Network> networks;
};
Result<ReadNetworks> read_networks(std::span<const std::byte> section, const ColumnMap& columns);
Status check_networks(const std::vector<Network>& networks, const Model& model,
                      const FeatureTable& table);
double reference_score(const std::vector<Network>& networks, std::span<const double> row,
                       const Problem& problem);
ModelFacts facts_of(const std::vector<Network>& networks);
// Adds `share` of what every column contributes to each explained row but the first, against the
// first: the mean change of the score when the two exchange the column's values.
void attribute(const std::vector<Network>& networks, const Problem& problem, double share,
               const Explained& out);
Result<std::unique_ptr<Scorer>> make_network_scorer(const std::vector<Network>& networks,
                                                    const Model& model, const FeatureTable& table);

// The row of the table of kinds.
const ModelKind& network_model_kind();

}  // namespace foretune
