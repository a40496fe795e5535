// Random networks of the shapes that the trainer builds, for tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/model/network/torch_layers.h"

namespace foretune::testing_support {

inline std::vector<float> sample_floats(std::size_t count, double scale, Rng& rng) {
  std::vector<float> out(count);
  for (float& value : out) {
    value = static_cast<float>(scale * rng.normal());
  }
  return out;
}

inline TorchLayer sample_linear(std::uint32_t inputs, std::uint32_t outputs, Rng& rng) {
  return {.kind = TorchLayer::Kind::kLinear,
          .inputs = inputs,
          .outputs = outputs,
          .weight = sample_floats(std::size_t{inputs} * outputs, 0.5, rng),
          .bias = sample_floats(outputs, 0.5, rng)};
}

inline TorchLayer sample_norm(std::uint32_t width, Rng& rng) {
  TorchLayer layer{.kind = TorchLayer::Kind::kBatchNorm,
                   .inputs = width,
                   .outputs = width,
                   .weight = sample_floats(width, 1, rng),
                   .bias = sample_floats(width, 1, rng),
                   .mean = sample_floats(width, 1, rng)};
  for (std::uint32_t i = 0; i < width; ++i) {
    layer.variance.push_back(static_cast<float>(0.05 + 2 * rng.uniform()));
  }
  return layer;
}

inline TorchLayer layer_of(TorchLayer::Kind kind) { return {.kind = kind}; }

// Linear-ReLU-BatchNorm, again and again, then Linear.
inline std::vector<TorchLayer> sample_standard(std::uint32_t inputs,
                                               const std::vector<std::uint32_t>& widths,
                                               std::uint32_t outputs, Rng& rng) {
  std::vector<TorchLayer> layers;
  for (const std::uint32_t width : widths) {
    layers.push_back(sample_linear(inputs, width, rng));
    layers.push_back(layer_of(TorchLayer::Kind::kRelu));
    layers.push_back(sample_norm(width, rng));
    inputs = width;
  }
  layers.push_back(sample_linear(inputs, outputs, rng));
  return layers;
}

// Linear-ReLU-BatchNorm, then residual blocks, then Linear(1).
inline std::vector<TorchLayer> sample_deep(std::uint32_t inputs, std::uint32_t width,
                                           std::size_t blocks, Rng& rng) {
  using Kind = TorchLayer::Kind;
  std::vector<TorchLayer> layers{sample_linear(inputs, width, rng), layer_of(Kind::kRelu),
                                 sample_norm(width, rng)};
  for (std::size_t i = 0; i < blocks; ++i) {
    layers.push_back(layer_of(Kind::kBeginBlock));
    layers.push_back(sample_linear(width, width, rng));
    layers.push_back(layer_of(Kind::kRelu));
    layers.push_back(sample_norm(width, rng));
    layers.push_back(sample_linear(width, width, rng));
    layers.push_back(sample_norm(width, rng));
    layers.push_back(layer_of(Kind::kEndBlock));
    layers.push_back(layer_of(Kind::kRelu));
  }
  layers.push_back(sample_linear(width, 1, rng));
  return layers;
}

// Evaluates layers as DenseLayer describes (model/network/network.h), in double precision.
inline std::vector<double> evaluate_dense(const std::vector<DenseLayer>& layers,
                                          std::vector<double> x) {
  std::vector<double> entered;  // the input of the layer before the current one
  for (const DenseLayer& layer : layers) {
    std::vector<double> y(layer.bias.begin(), layer.bias.end());
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        y[o] += x[i] * static_cast<double>(layer.weights[i * layer.outputs + o]);
      }
    }
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      y[o] += layer.adds_skip ? entered[o] : 0.0;
      y[o] = layer.is_rectified && y[o] < 0 ? 0.0 : y[o];
      if (!layer.scale.empty()) {
        y[o] = y[o] * static_cast<double>(layer.scale[o]) + static_cast<double>(layer.shift[o]);
      }
    }
    entered = std::exchange(x, std::move(y));
  }
  return x;
}

}  // namespace foretune::testing_support
