#include "foretune/model/network/network.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/model/network/network_int8.h"

namespace foretune {
namespace {

Status check_layer(const DenseLayer& layer, std::string_view name, std::size_t index) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::kCorrupt, "layer ", index, " of the network's ", name, " ", what);
  };
  if (layer.inputs == 0 || layer.outputs == 0 || layer.inputs > Network::kMaxInputs ||
      layer.outputs > Network::kMaxWidth) {
    return wrong("has a width that makes no sense");
  }
  const std::size_t weights = std::size_t{layer.inputs} * layer.outputs;
  if (layer.weights.size() != (layer.is_int8() ? 0 : weights) ||
      layer.int8_weights.size() != (layer.is_int8() ? weights : 0) ||
      layer.input_scales.size() != (layer.is_int8() ? layer.inputs : 0) ||
      layer.steps.size() != (layer.is_int8() ? layer.outputs : 0) ||
      layer.bias.size() != layer.outputs || layer.scale.size() != layer.shift.size() ||
      (!layer.scale.empty() && layer.scale.size() != layer.outputs)) {
    return wrong("has another number of weights than its widths say");
  }
  if (!all_finite(layer.weights) || !all_finite(layer.steps) || !all_finite(layer.input_scales) ||
      !all_finite(layer.bias) || !all_finite(layer.scale) || !all_finite(layer.shift)) {
    return wrong("has a weight that is not finite");
  }
  if (std::any_of(layer.input_scales.begin(), layer.input_scales.end(),
                  [](float scale) { return scale < 0; })) {
    return wrong("has a negative scale");
  }
  return {};
}

Status check_layers(std::span<const DenseLayer> layers, std::string_view name) {
  if (layers.empty() || layers.size() > Network::kMaxLayers) {
    return fail(ErrorCode::kCorrupt, "the network's ", name, " has ", layers.size(), " layers");
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const DenseLayer& layer = layers[i];
    FORETUNE_TRY_STATUS(check_layer(layer, name, i));
    const bool continues = i == 0 || layers[i - 1].outputs == layer.inputs;
    // The skipped values must still be there and as many as are added to.
    const bool can_skip = !layer.adds_skip || (i > 1 && !layers[i - 1].adds_skip &&
                                               layers[i - 1].inputs == layer.outputs);
    if (!continues || !can_skip) {
      return fail(ErrorCode::kCorrupt, "layer ", i, " of the network's ", name,
                  " does not fit the layers before it");
    }
  }
  return {};
}

Status check_inputs(const Network& network) {
  for (const NetworkInput& input : network.inputs) {
    if (!std::isfinite(input.value) || !std::isfinite(input.mean) ||
        !std::isfinite(input.inverse_std) || input.transform > InputTransform::kEquals) {
      return fail(ErrorCode::kCorrupt, "an input of the network is made in a way that is none");
    }
  }
  for (std::size_t i = 0; i < network.field_inputs.size(); ++i) {
    const FieldInput& input = network.field_inputs[i];
    // How many fields there are is not known here.
    FORETUNE_TRY_STATUS(check_distilled_feature(input.feature, i, std::size_t{UINT8_MAX} + 1));
    if (!std::isfinite(input.mean) || !std::isfinite(input.inverse_std)) {
      return fail(ErrorCode::kCorrupt, "an input of the network is made in a way that is none");
    }
  }
  const std::size_t counted = std::size_t{network.problem_inputs} + network.config_inputs;
  if (counted > network.inputs.size() ||
      (network.has_towers() && counted != network.inputs.size())) {
    return fail(ErrorCode::kCorrupt, "the network has ", network.inputs.size(), " inputs and ",
                network.problem_inputs, " of the problem, ", network.config_inputs,
                " of the config");
  }
  return {};
}

// 0 of what is no number, as the instructions have it.
float rectified(float value) { return value > 0 ? value : 0.0F; }

std::vector<float> sums(const DenseLayer& layer, std::span<const float> values) {
  std::vector<float> out = layer.bias;
  for (std::size_t k = 0; k < layer.inputs; ++k) {
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      out[o] = std::fma(values[k], layer.weights[k * layer.outputs + o], out[o]);
    }
  }
  return out;
}

// One pass of a row, in the order of operations that the header promises.
std::vector<float> run_layers(std::span<const DenseLayer> layers, std::vector<float> first) {
  std::vector<float> before;
  std::vector<float> values = std::move(first);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const DenseLayer& layer = layers[i];
    std::vector<float> out = layer.is_int8() ? int8_sums(layer, values) : sums(layer, values);
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      float sum = out[o];
      sum = layer.adds_skip ? sum + before[o] : sum;
      sum = layer.is_rectified ? rectified(sum) : sum;
      out[o] = layer.scale.empty() ? sum : std::fma(sum, layer.scale[o], layer.shift[o]);
    }
    before = std::move(values);
    values = std::move(out);
  }
  return values;
}

// The first layer adds what the problem gives to what the config gives, and then goes on with what
// depends on both: a pool keeps the config's part.
std::vector<float> run_first(const DenseLayer& layer, std::span<const float> values,
                             std::size_t problem, std::size_t config) {
  std::vector<float> out(layer.outputs);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    const auto weight = [&](std::size_t k) { return layer.weights[k * layer.outputs + o]; };
    float of_problem = layer.bias[o];
    for (std::size_t k = 0; k < problem; ++k) {
      of_problem = std::fma(values[k], weight(k), of_problem);
    }
    float of_config = 0;
    for (std::size_t k = problem; k < problem + config; ++k) {
      of_config = std::fma(values[k], weight(k), of_config);
    }
    float sum = of_problem + of_config;
    for (std::size_t k = problem + config; k < layer.inputs; ++k) {
      sum = std::fma(values[k], weight(k), sum);
    }
    sum = layer.is_rectified ? rectified(sum) : sum;
    out[o] = layer.scale.empty() ? sum : std::fma(sum, layer.scale[o], layer.shift[o]);
  }
  return out;
}

float run_towers(const Network& network, std::span<const float> problem,
                 std::span<const float> config) {
  const std::vector<float> p =
      run_layers(network.layers, std::vector<float>(problem.begin(), problem.end()));
  const std::vector<float> c =
      run_layers(network.config_layers, std::vector<float>(config.begin(), config.end()));
  const std::size_t dot = network.dot_length();
  float sum = c.back();
  for (std::size_t i = 0; i < dot; ++i) {
    sum = std::fma(p[i], c[i], sum);
  }
  for (std::size_t h = 0; h < network.interaction.size(); ++h) {
    sum = std::fma(network.interaction[h], rectified(p[dot + h] + c[dot + h]), sum);
  }
  return sum;
}

void put_layers(ByteWriter& writer, const std::vector<DenseLayer>& layers) {
  writer.put_varint(layers.size());
  for (const DenseLayer& layer : layers) {
    writer.put(layer.inputs, layer.outputs);
    writer.put(static_cast<std::uint8_t>((layer.is_rectified ? 1U : 0U) |
                                         (layer.adds_skip ? 2U : 0U) |
                                         (layer.is_int8() ? 4U : 0U)));
    if (layer.is_int8()) {
      put_array(writer, layer.int8_weights);
      put_array(writer, layer.input_scales);
      put_array(writer, layer.steps);
    } else {
      put_array(writer, layer.weights);
    }
    put_array(writer, layer.bias);
    put_array(writer, layer.scale);
    put_array(writer, layer.shift);
  }
}

std::vector<DenseLayer> get_layers(ByteReader& reader) {
  constexpr std::size_t kMinBytes = 13;
  std::vector<DenseLayer> out(reader.get_count(kMinBytes));
  for (DenseLayer& layer : out) {
    layer.inputs = reader.get<std::uint32_t>();
    layer.outputs = reader.get<std::uint32_t>();
    const auto flags = reader.get<std::uint8_t>();
    if (flags > 7) {
      reader.fail();
    }
    layer.is_rectified = (flags & 1U) != 0;
    layer.adds_skip = (flags & 2U) != 0;
    if ((flags & 4U) != 0) {
      layer.int8_weights = get_array<std::int8_t>(reader);
      layer.input_scales = get_array<float>(reader);
      layer.steps = get_array<float>(reader);
    } else {
      layer.weights = get_array<float>(reader);
    }
    layer.bias = get_array<float>(reader);
    layer.scale = get_array<float>(reader);
    layer.shift = get_array<float>(reader);
  }
  return out;
}

}  // namespace

double transformed(InputTransform transform, double parameter, double x) {
  constexpr double kMinLogArgument = 1e-30;
  switch (transform) {
    case InputTransform::kIdentity:
      return x;
    case InputTransform::kLog:
      return std::log(std::max(x, kMinLogArgument));
    case InputTransform::kSignedLog:
      return std::copysign(std::log1p(std::fabs(x)), x);
    case InputTransform::kEquals:
      return x == parameter ? 1 : 0;
  }
  return 0;
}

double distilled_feature_units(const DistilledFeature& feature,
                               std::span<const std::int64_t> fields) {
  return static_cast<double>(distilled_feature_value(feature, fields)) / DistilledModel::kUnit;
}

std::size_t Network::dot_length() const { return layers.back().outputs - interaction.size(); }

Status Network::validate() const {
  FORETUNE_TRY_STATUS(check_layers(layers, has_towers() ? "problem's tower" : "chain"));
  FORETUNE_TRY_STATUS(check_inputs(*this));
  const std::size_t all = inputs.size() + field_inputs.size();
  if (has_towers()) {
    FORETUNE_TRY_STATUS(check_layers(config_layers, "config's tower"));
    if (layers.back().outputs < interaction.size() ||
        config_layers.back().outputs != layers.back().outputs + 1) {
      return fail(ErrorCode::kCorrupt, "the network's towers do not end in the same width");
    }
    if (layers.front().inputs != problem_width() || config_layers.front().inputs != config_inputs) {
      return fail(ErrorCode::kCorrupt, "the network's towers do not take its inputs");
    }
  } else if (layers.front().is_int8()) {
    return fail(ErrorCode::kCorrupt, "the network's first layer has weights of 8 bits");
  } else if (layers.back().outputs != 1 || !interaction.empty() || layers.front().inputs != all) {
    return fail(ErrorCode::kCorrupt, "the network's chain does not lead from ", all,
                " inputs to one number");
  }
  if (!all_finite(interaction) || !std::isfinite(least)) {
    return fail(ErrorCode::kCorrupt, "the network has a weight that is not finite");
  }
  return {};
}

Status Network::validate(const FeatureTable& table, std::size_t fields) const {
  FORETUNE_TRY_STATUS(validate());
  const std::span<const FeatureInfo> columns = table.columns();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].column >= columns.size()) {
      return fail(ErrorCode::kMismatch, "the network sees column ", inputs[i].column,
                  " of the feature table ", table.name(), ", which has ", columns.size());
    }
    const FeatureKind kind = i < problem_inputs                   ? FeatureKind::kProblem
                             : i < problem_inputs + config_inputs ? FeatureKind::kConfig
                                                                  : FeatureKind::kInteraction;
    if (columns[inputs[i].column].kind != kind) {
      return fail(ErrorCode::kMismatch, "the network takes column ", columns[inputs[i].column].name,
                  " for one of another kind");
    }
  }
  for (std::size_t i = 0; i < field_inputs.size(); ++i) {
    FORETUNE_TRY_STATUS(check_distilled_feature(field_inputs[i].feature, i, fields));
  }
  return {};
}

double predict_reference(const Network& network, std::span<const double> row,
                         std::span<const std::int64_t> fields) {
  std::vector<float> values;
  for (std::size_t i = 0; i < network.problem_inputs; ++i) {
    values.push_back(network.inputs[i].of(row[network.inputs[i].column]));
  }
  for (const FieldInput& input : network.field_inputs) {
    values.push_back(input.of(fields));
  }
  const std::size_t problem = values.size();
  for (std::size_t i = network.problem_inputs; i < network.inputs.size(); ++i) {
    values.push_back(network.inputs[i].of(row[network.inputs[i].column]));
  }
  const std::span all(values);
  float score = 0;
  if (network.has_towers()) {
    score = run_towers(network, all.first(problem), all.subspan(problem));
  } else {
    const std::span<const DenseLayer> layers(network.layers);
    score = run_layers(layers.subspan(1),
                       run_first(layers.front(), all, problem, network.config_inputs))
                .front();
  }
  return above_least(network, score);
}

double above_least(const Network& network, float score) {
  if (!network.has_least) {
    return static_cast<double>(score);
  }
  const auto value = static_cast<double>(score);
  const auto least = static_cast<double>(network.least);
  return std::max(value, least) + std::log1p(std::exp(-std::fabs(value - least)));
}

void put_network(ByteWriter& writer, const Network& network) {
  writer.put_string(network.architecture);
  writer.put(network.problem_inputs, network.config_inputs);
  writer.put_varint(network.inputs.size());
  for (const NetworkInput& input : network.inputs) {
    writer.put(input.column, static_cast<std::uint8_t>(input.transform), input.value, input.mean,
               input.inverse_std);
  }
  writer.put_varint(network.field_inputs.size());
  for (const FieldInput& input : network.field_inputs) {
    put_distilled_feature(writer, input.feature);
    writer.put(input.mean, input.inverse_std);
  }
  put_layers(writer, network.layers);
  put_layers(writer, network.config_layers);
  put_array(writer, network.interaction);
  writer.put(static_cast<std::uint8_t>(network.has_least ? 1 : 0), network.least);
}

Result<Network> get_network(ByteReader& reader) {
  constexpr std::size_t kInputBytes = 27;
  constexpr std::size_t kFieldInputBytes = 40;
  Network network;
  network.architecture = reader.get_string();
  network.problem_inputs = reader.get<std::uint32_t>();
  network.config_inputs = reader.get<std::uint32_t>();
  network.inputs.resize(reader.get_count(kInputBytes));
  for (NetworkInput& input : network.inputs) {
    input.column = reader.get<std::uint16_t>();
    input.transform = static_cast<InputTransform>(reader.get<std::uint8_t>());
    input.value = reader.get<double>();
    input.mean = reader.get<double>();
    input.inverse_std = reader.get<double>();
  }
  network.field_inputs.resize(reader.get_count(kFieldInputBytes));
  for (FieldInput& input : network.field_inputs) {
    input.feature = get_distilled_feature(reader);
    input.mean = reader.get<double>();
    input.inverse_std = reader.get<double>();
  }
  network.layers = get_layers(reader);
  network.config_layers = get_layers(reader);
  network.interaction = get_array<float>(reader);
  const auto has_least = reader.get<std::uint8_t>();
  network.has_least = has_least == 1;
  network.least = reader.get<float>();
  if (!reader.ok() || has_least > 1) {
    return fail(ErrorCode::kCorrupt, "a network is damaged");
  }
  FORETUNE_TRY_STATUS(network.validate());
  return network;
}

}  // namespace foretune
