#include "foretune/approx/sensitivity.h"

#include <cstddef>

#include "foretune/graph/ops.h"
#include "foretune/graph/run/knob.h"

namespace foretune::approx {

std::vector<LayerSensitivity> sensitivity_of(const graph::Network& network, const Effects& effects,
                                             const NetworkTimes& times) {
  const std::vector<const graph::Node*> layers = graph::layers_of(network);
  std::vector<LayerSensitivity> out;
  for (std::size_t l = 0; l < effects.layers.size(); ++l) {
    LayerSensitivity& layer = out.emplace_back();
    layer.layer = effects.layers[l].layer;
    layer.op = layers[l]->op->name;
    for (const KnobEffect& effect : effects.layers[l].knobs) {
      layer.knobs.push_back({.knob = graph::knob_text(effect.knob),
                             .loss = effects.loss(effect.quality),
                             .ns = times.layers[l].ns_of(effect.knob).value_or(0)});
    }
  }
  return out;
}

}  // namespace foretune::approx
