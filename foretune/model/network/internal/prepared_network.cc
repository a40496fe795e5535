#include "foretune/model/network/internal/prepared_network.h"

#include <algorithm>
#include <new>
#include <utility>

#include "foretune/model/network/network_int8.h"

namespace foretune {
namespace {

constexpr std::align_val_t kFloatsAlignment{64};
constexpr std::size_t kInt8Ranges = 2;  // rows: the least value and the step

std::size_t blocks_of(std::size_t candidates) {
  return (candidates + kNetworkLanes - 1) / kNetworkLanes;
}

}  // namespace

AlignedFloats::AlignedFloats(std::size_t size)
    : data_(static_cast<float*>(::operator new[](size * sizeof(float), kFloatsAlignment))),
      size_(size) {
  std::fill_n(data_.get(), size, 0.0F);
}

void AlignedFloats::Free::operator()(float* data) const {
  ::operator delete[](data, kFloatsAlignment);
}

PreparedNetwork::PreparedNetwork(const Network& network, std::size_t first_config_column,
                                 std::size_t first_interaction_column,
                                 std::span<const double> config_columns, std::size_t candidates,
                                 CpuIsa isa)
    : kernels_(network_kernels(isa)),
      first_interaction_(first_interaction_column),
      interactions_(network.inputs.size() - network.problem_inputs - network.config_inputs) {
  network_.inputs = network.inputs;
  network_.field_inputs = network.field_inputs;
  network_.problem_inputs = network.problem_inputs;
  network_.config_inputs = network.config_inputs;
  network_.has_least = network.has_least;
  network_.least = network.least;
  network_.interaction = network.interaction;
  const std::span<const DenseLayer> layers(network.layers);
  if (network.has_towers()) {
    layers_ = packed_all(layers);
    config_layers_ = packed_all(network.config_layers);
    interaction_ = AlignedFloats(network_padded(network.interaction.size()));
    std::copy(network.interaction.begin(), network.interaction.end(), interaction_.data());
    config_rows_ = network_padded(config_layers_.back().outputs);
  } else {
    const DenseLayer& first = layers.front();
    const std::size_t of_problem = network.problem_width();
    problem_layer_ = packed(first, 0, of_problem, true);
    config_layer_ = packed(first, of_problem, network.config_inputs, false);
    first_layer_ = packed(first, of_problem + network.config_inputs, interactions_, false);
    first_layer_.is_rectified = first.is_rectified;
    layers_ = packed_all(layers.subspan(1));
    config_rows_ = network_padded(first.outputs);
    first_layer_.scale = AlignedFloats(first.scale.empty() ? 0 : config_rows_);
    first_layer_.shift = AlignedFloats(first.scale.empty() ? 0 : config_rows_);
    std::copy(first.scale.begin(), first.scale.end(), first_layer_.scale.data());
    std::copy(first.shift.begin(), first.shift.end(), first_layer_.shift.data());
    width_ = config_rows_;
  }
  width_ = std::max({width_, network.problem_width(), std::size_t{network.config_inputs}});
  for (const std::vector<DenseLayer>* part : {&network.layers, &network.config_layers}) {
    for (const DenseLayer& layer : *part) {
      width_ = std::max(width_, network_padded(layer.outputs));
    }
  }
  // The scratch memory holds the results of begin() for score(), two blocks of values, and one
  // block of inputs.
  blocks_offset_ = (width_ + kNetworkLanes) / 16 * 16;
  int8_offset_ = blocks_offset_ + (2 * width_ + interactions_) * kNetworkLanes;
  if (has_int8_weights(network)) {
    int8_floats_ = (network_quads(width_) + kInt8Ranges) * kNetworkLanes;
  }
  scratch_floats_ = int8_offset_ + int8_floats_;
  add_config_parts(config_columns, first_config_column, candidates);
}

PreparedNetwork::Layer PreparedNetwork::packed(const DenseLayer& layer, std::size_t first_input,
                                               std::size_t inputs, bool has_bias) {
  Layer out;
  out.inputs = inputs;
  out.outputs = layer.outputs;
  if (layer.is_int8()) {
    pack_int8_weights(layer, out);
  } else {
    pack_weights(layer, first_input, out);
  }
  out.bias = AlignedFloats(network_padded(layer.outputs));
  if (has_bias) {
    std::copy(layer.bias.begin(), layer.bias.end(), out.bias.data());
  }
  return out;
}

void PreparedNetwork::pack_weights(const DenseLayer& layer, std::size_t first_input, Layer& out) {
  out.weights = AlignedFloats(network_padded(layer.outputs) * out.inputs);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t k = 0; k < out.inputs; ++k) {
      const std::size_t tile = o / kNetworkTile;
      out.weights.data()[(tile * out.inputs + k) * kNetworkTile + o % kNetworkTile] =
          layer.weights[(first_input + k) * layer.outputs + o];
    }
  }
}

void PreparedNetwork::pack_int8_weights(const DenseLayer& layer, Layer& out) {
  const std::size_t padded = network_padded(layer.outputs);
  const std::size_t quads = network_quads(layer.inputs);
  out.int8_weights.assign(padded * quads * kNetworkQuad, 0);
  out.int8_sums = AlignedFloats(padded);
  out.int8_steps = AlignedFloats(padded);
  out.int8_input_scales = AlignedFloats(layer.inputs);
  std::copy(layer.input_scales.begin(), layer.input_scales.end(), out.int8_input_scales.data());
  std::copy(layer.steps.begin(), layer.steps.end(), out.int8_steps.data());
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < layer.inputs; ++k) {
      const std::int8_t weight = layer.int8_weights[k * layer.outputs + o];
      const std::size_t row = o / kNetworkTile * quads + k / kNetworkQuad;
      const std::size_t column = o % kNetworkTile * kNetworkQuad + k % kNetworkQuad;
      out.int8_weights[row * kNetworkTile * kNetworkQuad + column] = weight;
      sum += weight;
    }
    out.int8_sums.data()[o] = static_cast<float>(sum);
  }
}

std::vector<PreparedNetwork::Layer> PreparedNetwork::packed_all(
    std::span<const DenseLayer> layers) {
  std::vector<Layer> out;
  for (const DenseLayer& layer : layers) {
    Layer next = packed(layer, 0, layer.inputs, true);
    next.is_rectified = layer.is_rectified;
    next.adds_skip = layer.adds_skip;
    next.has_positive_inputs =
        !out.empty() && out.back().is_rectified && out.back().scale.size() == 0;
    if (!layer.scale.empty()) {
      next.scale = AlignedFloats(network_padded(layer.outputs));
      next.shift = AlignedFloats(network_padded(layer.outputs));
      std::copy(layer.scale.begin(), layer.scale.end(), next.scale.data());
      std::copy(layer.shift.begin(), layer.shift.end(), next.shift.data());
    }
    out.push_back(std::move(next));
  }
  return out;
}

NetworkDense PreparedNetwork::task_of(const Layer& layer) {
  return {.input = nullptr,
          .weights = layer.weights.data(),
          .bias = layer.bias.data(),
          .initial = nullptr,
          .skip = nullptr,
          .scale = layer.scale.size() == 0 ? nullptr : layer.scale.data(),
          .shift = layer.shift.size() == 0 ? nullptr : layer.shift.data(),
          .output = nullptr,
          .inputs = layer.inputs,
          .outputs = layer.outputs,
          .lanes = kNetworkLanes,
          .is_rectified = layer.is_rectified};
}

float* PreparedNetwork::run(std::span<const Layer> layers, float* a, float* b, float* int8_values,
                            std::size_t lanes) const {
  for (const Layer& layer : layers) {
    NetworkDense task = task_of(layer);
    task.input = a;
    // `b` still holds the input of the layer before; the sum replaces it.
    task.skip = layer.adds_skip ? b : nullptr;
    task.output = b;
    task.lanes = lanes;
    if (layer.int8_weights.empty()) {
      kernels_->dense(task);
    } else {
      kernels_->dense_int8(
          task,
          {.quads = layer.int8_weights.data(),
           .input_scales = layer.int8_input_scales.data(),
           .sums = layer.int8_sums.data(),
           .steps = layer.int8_steps.data()},
          {.are_positive = layer.has_positive_inputs,
           .quads = reinterpret_cast<std::uint8_t*>(int8_values + kInt8Ranges * kNetworkLanes),
           .low = int8_values,
           .step = int8_values + kNetworkLanes});
    }
    std::swap(a, b);
  }
  return a;
}

void PreparedNetwork::fill_config_block(std::span<const double> config_columns,
                                        std::size_t first_config_column, std::size_t candidates,
                                        std::size_t block, float* out) const {
  const std::size_t first = block * kNetworkLanes;
  const std::size_t count = std::min(kNetworkLanes, candidates - first);
  for (std::size_t k = 0; k < network_.config_inputs; ++k) {
    const NetworkInput& input = network_.inputs[network_.problem_inputs + k];
    const double* values =
        config_columns.data() + (input.column - first_config_column) * candidates + first;
    for (std::size_t i = 0; i < count; ++i) {
      out[k * kNetworkLanes + i] = input.of(values[i]);
    }
  }
}

void PreparedNetwork::add_config_parts(std::span<const double> config_columns,
                                       std::size_t first_config_column, std::size_t candidates) {
  const std::size_t blocks = blocks_of(candidates);
  const std::size_t rows = config_rows_;
  config_part_ = AlignedFloats(blocks * rows * kNetworkLanes);
  for (std::size_t block = 0; block < blocks; ++block) {
    AlignedFloats a(width_ * kNetworkLanes);
    AlignedFloats b(width_ * kNetworkLanes);
    AlignedFloats int8_values(int8_floats_);
    fill_config_block(config_columns, first_config_column, candidates, block, a.data());
    float* out = config_part_.data() + block * rows * kNetworkLanes;
    if (config_layers_.empty()) {
      NetworkDense task = task_of(config_layer_);
      task.input = a.data();
      task.output = out;
      kernels_->dense(task);
    } else {
      const float* values =
          run(config_layers_, a.data(), b.data(), int8_values.data(), kNetworkLanes);
      std::copy_n(values, rows * kNetworkLanes, out);
    }
  }
}

void PreparedNetwork::begin(std::span<const double> problem_row,
                            std::span<const std::int64_t> fields, float* scratch) const {
  float* a = scratch + blocks_offset_;
  float* b = a + width_ * kNetworkLanes;
  float* at = a;
  for (std::size_t k = 0; k < network_.problem_inputs; ++k, at += kNetworkLanes) {
    *at = network_.inputs[k].of(problem_row[network_.inputs[k].column]);
  }
  for (const FieldInput& input : network_.field_inputs) {
    *at = input.of(fields);
    at += kNetworkLanes;
  }
  const float* values = b;
  std::size_t count = 0;
  if (config_layers_.empty()) {
    NetworkDense task = task_of(problem_layer_);
    task.input = a;
    task.output = b;
    task.lanes = 1;
    kernels_->dense(task);
    count = problem_layer_.outputs;
  } else {
    values = run(layers_, a, b, scratch + int8_offset_, 1);
    count = layers_.back().outputs;
  }
  for (std::size_t i = 0; i < network_padded(count); ++i) {
    scratch[i] = i < count ? values[i * kNetworkLanes] : 0;
  }
}

void PreparedNetwork::score(std::size_t block, std::size_t count, const double* interactions,
                            std::size_t stride, float* scratch, std::span<double> scores) const {
  float* a = scratch + blocks_offset_;
  float* b = a + width_ * kNetworkLanes;
  const float* config = config_part_.data() + block * config_rows_ * kNetworkLanes;
  const float* values = b;
  if (config_layers_.empty()) {
    float* inputs = b + width_ * kNetworkLanes;
    for (std::size_t k = 0; k < interactions_; ++k) {
      const NetworkInput& input =
          network_.inputs[network_.problem_inputs + network_.config_inputs + k];
      const double* from = interactions + (input.column - first_interaction_) * stride;
      float* to = inputs + k * kNetworkLanes;
      for (std::size_t i = 0; i < kNetworkLanes; ++i) {
        to[i] = i < count ? input.of(from[i]) : 0;
      }
    }
    NetworkDense task = task_of(first_layer_);
    task.input = inputs;
    task.bias = scratch;
    task.initial = config;
    task.output = a;
    task.lanes = count;
    kernels_->dense(task);
    values = run(layers_, a, b, scratch + int8_offset_, count);
  } else {
    const std::size_t hidden = network_.interaction.size();
    kernels_->towers({.problem = scratch,
                      .config = config,
                      .interaction = interaction_.data(),
                      .output = b,
                      .dot = layers_.back().outputs - hidden,
                      .hidden = hidden});
  }
  for (std::size_t i = 0; i < count; ++i) {
    scores[i] = above_least(network_, values[i]);
  }
}

}  // namespace foretune
