#include "foretune/approx/models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/graph/run/knob.h"

namespace foretune::approx {

namespace {

// Returns how wide the numbers of a knob are.
int width_of(std::int32_t knob) {
  const Result<graph::LayerVariant> variant = graph::variant_of_knob(knob);
  if (!variant) {
    return 4;
  }
  switch (variant->type) {
    case DataType::kI8:
      return 1;
    case DataType::kBf16:
      return 2;
    default:
      return 4;  // f16 is widened before anything is computed
  }
}

// Returns the layers whose results reach a layer without passing another, with the elements of the
// tensors that the layer reads.
std::vector<std::vector<LayerInput>> layer_inputs(const graph::Network& network) {
  std::map<std::string_view, std::size_t> places;
  std::vector<std::vector<LayerInput>> inputs;
  for (const graph::Node* layer : graph::layers_of(network)) {
    places.emplace(layer->name, places.size());
    const auto elements =
        static_cast<double>(graph::element_count(network.tensor(layer->inputs[0]).shape)) / 1e3;
    std::vector<LayerInput>& own = inputs.emplace_back();
    std::vector<graph::TensorId> open{layer->inputs[0]};
    std::set<graph::TensorId> seen;
    while (!open.empty()) {
      const graph::TensorId id = open.back();
      open.pop_back();
      const std::int32_t position = network.tensor(id).node;
      if (!seen.insert(id).second || position < 0) {
        continue;
      }
      const graph::Node& node = network.nodes()[static_cast<std::size_t>(position)];
      if (const auto found = places.find(node.name); found != places.end()) {
        own.push_back({.layer = found->second, .elements = elements});
      } else {
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      }
    }
  }
  return inputs;
}

}  // namespace

TimeModel::TimeModel(const graph::Network& network, NetworkTimes times)
    : times_(std::move(times)), inputs_(layer_inputs(network)) {}

Result<TimeModel::Terms> TimeModel::terms(std::span<const std::int32_t> knobs) const {
  if (knobs.size() != times_.layers.size()) {
    return fail(ErrorCode::kInvalidArgument, "a network of ", times_.layers.size(),
                " layers has no ", knobs.size(), " knobs");
  }
  Terms terms{};
  terms[kLayers] = times_.before_ns;
  for (std::size_t l = 0; l < knobs.size(); ++l) {
    const LayerTimes& layer = times_.layers[l];
    const std::optional<double> ns = layer.ns_of(knobs[l]);
    if (!ns) {
      return fail(ErrorCode::kInvalidArgument, "layer ", layer.layer, " was not timed with ",
                  graph::knob_text(knobs[l]));
    }
    terms[kLayers] += *ns;
    // Layers were timed among layers of their own knob, which need no conversion.
    const int now = width_of(knobs[l]);
    for (const LayerInput& input : inputs_[l]) {
      const int before = width_of(knobs[input.layer]);
      if (now != before) {
        terms[now < before ? kNarrower : kWider] += input.elements;
        terms[kConversions] += 1;
      }
    }
  }
  return terms;
}

Result<double> TimeModel::predict_ns(std::span<const std::int32_t> knobs) const {
  FORETUNE_TRY(const Terms values, terms(knobs));
  double ns = 0;
  for (std::size_t t = 0; t < kTerms; ++t) {
    ns += weights_[t] * values[t];
  }
  return ns;
}

Status TimeModel::fit(std::span<const std::vector<std::int32_t>> networks,
                      std::span<const double> ns) {
  FORETUNE_CHECK(networks.size() == ns.size());
  std::vector<double> rows;
  std::vector<double> values;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    FORETUNE_TRY(const Terms found, terms(networks[i]));
    // Relative errors count.
    for (const double term : found) {
      rows.push_back(term / ns[i]);
    }
    values.push_back(1);
  }
  Terms weights{1};
  fit_nonnegative(rows, values, weights);
  weights_ = weights;
  return {};
}

double network_bytes(const graph::Network& network, std::span<const std::int32_t> knobs) {
  double bytes = 0;
  std::size_t l = 0;
  for (const graph::Node* layer : graph::layers_of(network)) {
    const std::int32_t knob = knobs[l++];
    const Result<graph::LayerVariant> variant = graph::variant_of_knob(knob);
    const auto taps = variant ? static_cast<double>(variant->skip_taps) : 0.0;
    const auto elements = [&](graph::TensorId id) {
      return static_cast<double>(graph::element_count(network.tensor(id).shape));
    };
    bytes += width_of(knob) * (elements(layer->inputs[1]) * (taps > 0 ? 1 - 1 / taps : 1.0) +
                               elements(layer->output));
  }
  return bytes;
}

void fit_nonnegative(std::span<const double> rows, std::span<const double> values,
                     std::span<double> weights) {
  const std::size_t width = weights.size();
  FORETUNE_CHECK(rows.size() == values.size() * width);
  std::vector<double> errors(values.begin(), values.end());
  std::vector<double> squares(width, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t t = 0; t < width; ++t) {
      errors[i] -= rows[i * width + t] * weights[t];
      squares[t] += rows[i * width + t] * rows[i * width + t];
    }
  }
  constexpr int kSweeps = 2000;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t t = 0; t < width; ++t) {
      if (squares[t] == 0) {
        continue;
      }
      double slope = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        slope += rows[i * width + t] * errors[i];
      }
      const double next = std::max(0.0, weights[t] + slope / squares[t]);
      const double step = next - weights[t];
      for (std::size_t i = 0; i < values.size(); ++i) {
        errors[i] -= step * rows[i * width + t];
      }
      weights[t] = next;
      moved = std::max(moved, std::abs(step));
    }
    if (moved < 1e-9) {
      return;
    }
  }
}

}  // namespace foretune::approx
