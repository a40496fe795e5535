// Lists what each knob does to each layer alone, for people to read.
//
//   for (const LayerSensitivity& layer : sensitivity_of(network, effects, times)) ...
//
// Thread safety: free function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/graph/network.h"

namespace foretune::approx {

struct KnobSensitivity {
  std::string knob;  // graph::knob_text()
  double loss = 0;   // of the images that judge single knobs, in the metric's unit
  double ns = 0;     // of the layer, and of what follows up to the next one
};

struct LayerSensitivity {
  std::string layer;
  std::string op;                      // "conv"
  std::vector<KnobSensitivity> knobs;  // the exact one first
};

// Returns the knobs of the effects, layer by layer. `network` is simplified and has their layers,
// `times` knows all of their knobs.
[[nodiscard]] std::vector<LayerSensitivity> sensitivity_of(const graph::Network& network,
                                                           const Effects& effects,
                                                           const NetworkTimes& times);

}  // namespace foretune::approx
