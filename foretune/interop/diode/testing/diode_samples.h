// Makes checkpoints as torch-diode saves them, byte by byte, with random weights. For tests.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/formats/testing/zip_samples.h"
#include "foretune/interop/diode/diode_checkpoint.h"

namespace foretune {

struct SampleDiode {
  DiodeKind kind = DiodeKind::kV1;
  std::vector<std::uint32_t> widths;  // of the hidden layers
  bool has_names = true;              // the pickle has names of the tensors
  bool has_optimiser = false;         // Adam's state follows the model
  std::uint64_t seed = 1;
};

inline TorchLayer sample_marker(TorchLayer::Kind kind) {
  TorchLayer layer;
  layer.kind = kind;
  return layer;
}

inline std::vector<float> sample_floats(std::size_t count, double mean, double spread, Rng& rng) {
  std::vector<float> out(count);
  for (float& value : out) {
    value = static_cast<float>(mean + spread * (2 * rng.uniform() - 1));
  }
  return out;
}

inline TorchLayer sample_linear(std::uint32_t inputs, std::uint32_t outputs, Rng& rng) {
  TorchLayer layer;
  layer.kind = TorchLayer::Kind::kLinear;
  layer.inputs = inputs;
  layer.outputs = outputs;
  layer.weight = sample_floats(std::size_t{inputs} * outputs, 0, 0.5, rng);
  layer.bias = sample_floats(outputs, 0, 0.2, rng);
  return layer;
}

inline TorchLayer sample_norm(std::uint32_t width, Rng& rng) {
  TorchLayer layer;
  layer.kind = TorchLayer::Kind::kBatchNorm;
  layer.inputs = width;
  layer.outputs = width;
  layer.weight = sample_floats(width, 1, 0.4, rng);
  layer.bias = sample_floats(width, 0, 0.3, rng);
  layer.mean = sample_floats(width, 0.2, 0.3, rng);
  layer.variance = sample_floats(width, 1, 0.8, rng);
  return layer;
}

// Returns the layers in the order of the classes' forward passes.
inline std::vector<TorchLayer> sample_diode_layers(const SampleDiode& sample) {
  using Kind = TorchLayer::Kind;
  Rng rng(sample.seed);
  std::vector<TorchLayer> layers;
  std::uint32_t inputs = sample.kind == DiodeKind::kV1 ? 12 : 36;
  const auto linear = [&](std::uint32_t outputs) {
    layers.push_back(sample_linear(inputs, outputs, rng));
    inputs = outputs;
  };
  const auto norm = [&] { layers.push_back(sample_norm(inputs, rng)); };
  const auto mark = [&](Kind kind) { layers.push_back(sample_marker(kind)); };
  for (std::size_t i = 0; i < sample.widths.size(); ++i) {
    if (sample.kind == DiodeKind::kDeep && i > 0) {
      mark(Kind::kBeginBlock);
      linear(sample.widths[i]);
      mark(Kind::kRelu);
      norm();
      linear(sample.widths[++i]);
      norm();
      mark(Kind::kEndBlock);
      mark(Kind::kRelu);
      continue;
    }
    linear(sample.widths[i]);
    if (sample.kind == DiodeKind::kV1) {
      norm();
      mark(Kind::kRelu);
    } else {
      mark(Kind::kRelu);
      norm();
    }
  }
  linear(1);
  return layers;
}

inline std::string bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

inline std::string counter_bytes(std::int64_t batches) {
  return {reinterpret_cast<const char*>(&batches), sizeof(batches)};
}

inline std::vector<std::string> sample_storages(std::span<const TorchLayer> layers) {
  std::vector<std::string> out;
  for (const TorchLayer& layer : layers) {
    if (layer.kind == TorchLayer::Kind::kLinear || layer.kind == TorchLayer::Kind::kBatchNorm) {
      out.push_back(bytes_of(layer.weight));
      out.push_back(bytes_of(layer.bias));
    }
    if (layer.kind == TorchLayer::Kind::kBatchNorm) {
      out.push_back(bytes_of(layer.mean));
      out.push_back(bytes_of(layer.variance));
      out.push_back(counter_bytes(79933));
    }
  }
  return out;
}

// Adds Adam's state of every parameter: a step, and two tensors of its size.
inline void add_optimiser(std::span<const TorchLayer> layers, std::vector<std::string>& storages) {
  const std::vector<float> step{400};
  for (const TorchLayer& layer : layers) {
    for (const std::vector<float>* parameter : {&layer.weight, &layer.bias}) {
      if (!parameter->empty()) {
        storages.push_back(bytes_of(step));
        storages.push_back(bytes_of(*parameter));
        storages.push_back(bytes_of(*parameter));
      }
    }
  }
}

inline std::vector<std::byte> sample_archive(const std::vector<std::string>& storages,
                                             const std::string& pickle) {
  std::vector<formats::SampleEntry> entries{
      {"model/data.pkl", pickle}, {"model/.format_version", "1"}, {"model/byteorder", "little"}};
  for (std::size_t i = 0; i < storages.size(); ++i) {
    entries.push_back({concat("model/data/", i), storages[i]});
  }
  entries.push_back({"model/version", "3\n"});
  entries.push_back({"model/.data/serialization_id", "0123456789"});
  return formats::sample_zip(entries);
}

inline std::vector<std::byte> sample_diode_file(const SampleDiode& sample) {
  const std::vector<TorchLayer> layers = sample_diode_layers(sample);
  std::vector<std::string> storages = sample_storages(layers);
  if (sample.has_optimiser) {
    add_optimiser(layers, storages);
  }
  const char* names = sample.kind == DiodeKind::kV1     ? "linear_relu_stack.0.weight"
                      : sample.kind == DiodeKind::kBase ? "model.0.weight"
                                                        : "hidden_layers.0.block.0.weight";
  return sample_archive(storages, sample.has_names ? concat("\x80\x02", names, ".") : "\x80\x02.");
}

}  // namespace foretune
