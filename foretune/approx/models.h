// Predicts the time of a whole network, and the bytes that it needs, from what each knob does
// alone.
//
//   TimeModel times(network, measured);
//   FORETUNE_TRY(const double ns, times.predict_ns(knobs));
//
// Thread safety: plain values, each used by one thread. Cost: a few additions for each layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::approx {

// A layer whose result another one reads, directly or through operations without weights.
struct LayerInput {
  std::size_t layer = 0;
  double elements = 0;  // of what the other layer reads, in thousands
};

// The time of a network: those of its layers, and of conversions where the type changes on the way
// from one layer to another.
class TimeModel {
 public:
  TimeModel() = default;
  // `network` is simplified, with the layers of `times`. Conversions cost nothing before fit().
  TimeModel(const graph::Network& network, NetworkTimes times);
  // Knobs for each layer, in their order. Errors: kInvalidArgument for a knob without a time.
  [[nodiscard]] Result<double> predict_ns(std::span<const std::int32_t> knobs) const;
  // Fits the costs of conversions and of what no step has to networks that were measured. Spans
  // have the same length. Errors: as predict_ns().
  Status fit(std::span<const std::vector<std::int32_t>> networks, std::span<const double> ns);
  [[nodiscard]] const NetworkTimes& times() const { return times_; }

 private:
  // The sum of the layers' times, elements that become narrower and wider, in thousands, and how
  // often there are such elements.
  enum Term : std::size_t { kLayers, kNarrower, kWider, kConversions, kTerms };
  using Terms = std::array<double, kTerms>;
  [[nodiscard]] Result<Terms> terms(std::span<const std::int32_t> knobs) const;

  NetworkTimes times_;
  std::vector<std::vector<LayerInput>> inputs_;  // of each layer
  Terms weights_{1};
};

// Returns the bytes of a network's weights and of all results of its layers for one image, in the
// types of their knobs: what has to be read and written, whatever shares memory. Points of filters
// that are left out take none. `network` is simplified, `knobs` are in the order of its layers.
[[nodiscard]] double network_bytes(const graph::Network& network,
                                   std::span<const std::int32_t> knobs);

// Returns weights from 0 up that minimise the squared error of rows * weights - values, by
// coordinate descent. `rows` are of `weights.size()` numbers; `weights` is the start.
void fit_nonnegative(std::span<const double> rows, std::span<const double> values,
                     std::span<double> weights);

}  // namespace foretune::approx
