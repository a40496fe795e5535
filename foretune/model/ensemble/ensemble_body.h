// The body of the kind "ensemble": forests and networks, mixed by a share.
//
//   set_ensemble(model, {std::move(forests), std::move(networks), 0.4});
//
// A score is (1 - share) times that of the forests and share times that of the networks.
// Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/model/forest/forest.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/network/network.h"

namespace foretune {

struct EnsembleParts {
  std::vector<Forest> forests;
  std::vector<Network> networks;
  double network_share = 0.5;
  bool operator==(const EnsembleParts&) const = default;
};

struct EnsembleBody final : ModelBody {
  explicit EnsembleBody(EnsembleParts given) : parts(std::move(given)) {}
  [[nodiscard]] bool equals(const ModelBody& other) const override;

  EnsembleParts parts;
};

// No forests and no networks where the model is of another kind, or was read without its body.
const EnsembleParts& ensemble_of(const Model& model);
// Makes the model an ensemble.
void set_ensemble(Model& model, EnsembleParts parts);

// The row of the table of kinds.
const ModelKind& ensemble_model_kind();

}  // namespace foretune
