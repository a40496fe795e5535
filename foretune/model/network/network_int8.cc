#include "foretune/model/network/network_int8.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "foretune/base/check.h"
#include "foretune/model/network/internal/network_kernels.h"

namespace foretune {
namespace {

constexpr float kLargest = 127;

void make_int8(DenseLayer& layer) {
  layer.input_scales.assign(layer.inputs, 0);
  for (std::size_t k = 0; k < layer.inputs; ++k) {
    float& scale = layer.input_scales[k];
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      scale = std::max(scale, std::fabs(layer.weights[k * layer.outputs + o]));
    }
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      float& weight = layer.weights[k * layer.outputs + o];
      weight = scale > 0 ? weight / scale : 0;
    }
  }
  layer.steps.assign(layer.outputs, 0);
  layer.int8_weights.resize(layer.weights.size());
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const auto weight = [&](std::size_t k) { return layer.weights[k * layer.outputs + o]; };
    float largest = 0;
    for (std::size_t k = 0; k < layer.inputs; ++k) {
      largest = std::max(largest, std::fabs(weight(k)));
    }
    layer.steps[o] = largest / kLargest;
    for (std::size_t k = 0; k < layer.inputs; ++k) {
      const float scaled = layer.steps[o] > 0 ? weight(k) / layer.steps[o] : 0;
      layer.int8_weights[k * layer.outputs + o] =
          static_cast<std::int8_t>(std::lrint(std::clamp(scaled, -kLargest, kLargest)));
    }
  }
  layer.weights.clear();
}

}  // namespace

Result<Network> with_int8_weights(const Network& network) {
  if (network.has_towers()) {
    return fail(
        ErrorCode::kUnsupported,
        "weights of 8 bits are for networks of one chain: of two towers a query reads none");
  }
  constexpr std::size_t kFirstAndLast = 2;
  if (network.layers.size() <= kFirstAndLast) {
    return fail(ErrorCode::kUnsupported,
                "weights of 8 bits are for layers between the first and the last, and this network "
                "has none");
  }
  Network out = network;
  for (std::size_t i = 1; i + 1 < out.layers.size(); ++i) {
    if (!out.layers[i].is_int8()) {
      make_int8(out.layers[i]);
    }
  }
  return out;
}

bool has_int8_weights(const Network& network) {
  const auto is_int8 = [](const DenseLayer& layer) { return layer.is_int8(); };
  return std::any_of(network.layers.begin(), network.layers.end(), is_int8) ||
         std::any_of(network.config_layers.begin(), network.config_layers.end(), is_int8);
}

std::vector<float> int8_sums(const DenseLayer& layer, std::span<const float> values) {
  FORETUNE_CHECK(values.size() == layer.inputs);
  std::vector<float> scaled(values.begin(), values.end());
  float low = 0;
  float high = 0;
  for (std::size_t k = 0; k < layer.inputs; ++k) {
    float& x = scaled[k];
    x *= layer.input_scales[k];
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  const float step = (high - low) / kInt8Levels;
  const float inverse = high - low > kInt8LeastRange ? kInt8Levels / (high - low) : 0.0F;
  std::vector<std::int32_t> sums(layer.outputs, 0);
  std::vector<std::int32_t> weight_sums(layer.outputs, 0);
  for (std::size_t k = 0; k < layer.inputs; ++k) {
    const float levels = (scaled[k] - low) * inverse;
    // 0 of what is no number, as the instructions have it.
    const auto q = static_cast<std::int32_t>(std::lrint(levels > 0 ? levels : 0.0F));
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      const std::int8_t weight = layer.int8_weights[k * layer.outputs + o];
      sums[o] += q * weight;
      weight_sums[o] += weight;
    }
  }
  std::vector<float> out(layer.outputs);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const float of_step = step * static_cast<float>(sums[o]);
    const float whole = std::fma(low, static_cast<float>(weight_sums[o]), of_step);
    out[o] = std::fma(layer.steps[o], whole, layer.bias[o]);
  }
  return out;
}

}  // namespace foretune
