// Networks with random weights for tests and benchmarks. Not part of the library.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/network/network.h"

namespace foretune {

// Weights as large as keeps the values about as large.
inline DenseLayer random_layer(std::size_t inputs, std::size_t outputs, Rng& rng) {
  DenseLayer layer{.inputs = static_cast<std::uint32_t>(inputs),
                   .outputs = static_cast<std::uint32_t>(outputs)};
  for (std::size_t i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(
        static_cast<float>(rng.normal() / std::sqrt(static_cast<double>(inputs))));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    layer.bias.push_back(static_cast<float>(0.1 * rng.normal()));
  }
  return layer;
}

inline void add_random_scale(DenseLayer& layer, Rng& rng) {
  for (std::size_t i = 0; i < layer.outputs; ++i) {
    layer.scale.push_back(static_cast<float>(rng.uniform() + 0.5));
    layer.shift.push_back(static_cast<float>(0.1 * rng.normal()));
  }
}

inline std::vector<DenseLayer> random_layers(std::vector<std::size_t> widths, Rng& rng) {
  std::vector<DenseLayer> out;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    out.push_back(random_layer(widths[i - 1], widths[i], rng));
    out.back().is_rectified = i + 1 < widths.size();
  }
  return out;
}

// All columns of the table, of two towers those of problem and config, and two of the fields.
inline Network network_inputs(const FeatureTable& table, bool has_towers, Rng& rng) {
  Network out;
  const std::span<const FeatureInfo> columns = table.columns();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (has_towers && columns[c].kind == FeatureKind::kInteraction) {
      continue;
    }
    out.problem_inputs += columns[c].kind == FeatureKind::kProblem ? 1U : 0U;
    out.config_inputs += columns[c].kind == FeatureKind::kConfig ? 1U : 0U;
    out.inputs.push_back({.column = static_cast<std::uint16_t>(c),
                          .transform = c % 3 == 0   ? InputTransform::kSignedLog
                                       : c % 7 == 1 ? InputTransform::kEquals
                                                    : InputTransform::kIdentity,
                          .value = 64,
                          .mean = rng.normal(),
                          .inverse_std = 0.01});
  }
  out.field_inputs = {{.feature = {.kind = DistilledFeatureKind::kLog2, .field = 0}, .mean = 8},
                      {.feature = {.kind = DistilledFeatureKind::kUse, .field = 1, .block = 128},
                       .mean = 0.5,
                       .inverse_std = 3}};
  return out;
}

inline Network random_chain(const FeatureTable& table, std::vector<std::size_t> hidden, Rng& rng) {
  Network out = network_inputs(table, false, rng);
  out.architecture = "standard";
  hidden.insert(hidden.begin(), out.inputs.size() + out.field_inputs.size());
  hidden.push_back(1);
  out.layers = random_layers(hidden, rng);
  return out;
}

inline Network random_deep(const FeatureTable& table, std::size_t width, std::size_t blocks,
                           Rng& rng) {
  Network out = network_inputs(table, false, rng);
  out.architecture = "deep";
  out.layers.push_back(random_layer(out.inputs.size() + out.field_inputs.size(), width, rng));
  out.layers.back().is_rectified = true;
  add_random_scale(out.layers.back(), rng);
  for (std::size_t block = 0; block < blocks; ++block) {
    for (const bool is_second : {false, true}) {
      out.layers.push_back(random_layer(width, width, rng));
      out.layers.back().is_rectified = true;
      out.layers.back().adds_skip = is_second;
    }
  }
  out.layers.push_back(random_layer(width, 1, rng));
  return out;
}

// In place of random weights of 32 bits: by hand, so that towers can have some as well.
inline DenseLayer random_int8_layer(std::size_t inputs, std::size_t outputs, Rng& rng) {
  DenseLayer layer = random_layer(inputs, outputs, rng);
  layer.weights.clear();
  for (std::size_t i = 0; i < inputs * outputs; ++i) {
    layer.int8_weights.push_back(static_cast<std::int8_t>(rng.between(-127, 127)));
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    layer.input_scales.push_back(static_cast<float>(0.5 + rng.uniform()));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    layer.steps.push_back(static_cast<float>(0.01 * rng.uniform()));
  }
  return layer;
}

inline Network random_towers(const FeatureTable& table, std::size_t width, std::size_t dot,
                             std::size_t hidden, Rng& rng) {
  Network out = network_inputs(table, true, rng);
  out.architecture = "two-tower";
  out.layers = random_layers({out.problem_width(), width, width, dot + hidden}, rng);
  out.config_layers = random_layers({out.config_inputs, width, width, dot + hidden + 1}, rng);
  for (std::size_t h = 0; h < hidden; ++h) {
    out.interaction.push_back(static_cast<float>(rng.normal()));
  }
  return out;
}

}  // namespace foretune
