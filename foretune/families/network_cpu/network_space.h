// The configs of a network: one knob (graph/run/knob.h) for each of its layers, in its order.
// Thread safety: as Space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/space/space.h"

namespace foretune {

// The schema of all networks: a sequence of knobs.
const ConfigSchema& network_schema();

class NetworkSpace final : public Space {
 public:
  // `knobs` are those that the space offers beside 0; others are legal, too, where a layer can run
  // them.
  NetworkSpace(const graph::Network& network, const std::vector<std::int32_t>& knobs);

  const ConfigSchema& schema() const override { return network_schema(); }
  Support why_not(const Config& config) const override;
  // Draws how many layers are not exact, uniformly from 1 to all, then which, then their knobs.
  Result<Config> sample(Rng& rng) const override;
  // Changes one layer.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override { return config; }
  // Every offered knob in all layers that can have it.
  std::vector<Config> proposals(std::size_t count) const override;
  // "conv1=i8 conv2=f32+rows2.0", without exact layers; "exact" for none.
  std::string describe(const Config& config) const override;

 private:
  [[nodiscard]] Config exact() const;

  graph::Network network_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> nodes_;  // positions of the layers
  std::vector<std::int32_t> catalogue_;
  std::vector<std::vector<std::int32_t>> offered_;  // by layer, 0 among them
};

}  // namespace foretune
