#include "foretune/model/network/torch_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

using Kind = TorchLayer::Kind;

constexpr std::size_t kMaxTorchLayers = 16 * Network::kMaxLayers;

// y = scale x + shift per unit, in double precision until it is part of some layer.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

Affine affine_of(const TorchLayer& layer) {
  Affine out;
  for (std::size_t i = 0; i < layer.outputs; ++i) {
    const double scale = static_cast<double>(layer.weight[i]) /
                         std::sqrt(static_cast<double>(layer.variance[i]) + layer.epsilon);
    out.scale.push_back(scale);
    out.shift.push_back(static_cast<double>(layer.bias[i]) -
                        scale * static_cast<double>(layer.mean[i]));
  }
  return out;
}

Status check_lengths(const TorchLayer& layer) {
  const std::size_t inputs = layer.inputs;
  const std::size_t outputs = layer.outputs;
  const bool is_linear = layer.kind == Kind::kLinear;
  const bool is_norm = layer.kind == Kind::kBatchNorm;
  const std::size_t statistics = is_norm ? outputs : 0;
  const std::size_t weights = is_linear ? inputs * outputs : statistics;
  if (layer.weight.size() != weights || layer.bias.size() != (is_linear ? outputs : statistics) ||
      layer.mean.size() != statistics || layer.variance.size() != statistics) {
    return fail(ErrorCode::kCorrupt, "its tensors have not the lengths that ", inputs,
                " inputs and ", outputs, " outputs want");
  }
  return {};
}

Status check_layer(const TorchLayer& layer) {
  if (layer.kind > Kind::kEndBlock) {
    return fail(ErrorCode::kUnsupported, "it is of kind ", static_cast<int>(layer.kind),
                ", which this version does not know");
  }
  if (layer.kind != Kind::kLinear && layer.kind != Kind::kBatchNorm) {
    return {};
  }
  if (layer.inputs == 0 || layer.outputs == 0 || layer.inputs > Network::kMaxWidth ||
      layer.outputs > Network::kMaxWidth) {
    return fail(ErrorCode::kCorrupt, "it maps ", layer.inputs, " values to ", layer.outputs);
  }
  if (layer.kind == Kind::kBatchNorm && layer.inputs != layer.outputs) {
    return fail(ErrorCode::kCorrupt, "it normalises ", layer.inputs, " values to ", layer.outputs);
  }
  FORETUNE_TRY_STATUS(check_lengths(layer));
  if (!all_finite(layer.weight) || !all_finite(layer.bias) || !all_finite(layer.mean) ||
      !all_finite(layer.variance) || !std::isfinite(layer.epsilon)) {
    return fail(ErrorCode::kCorrupt, "it holds something that is no number");
  }
  for (const float variance : layer.variance) {
    if (variance < 0 || !(static_cast<double>(variance) + layer.epsilon > 0)) {
      return fail(ErrorCode::kCorrupt, "it has the variance ", variance);
    }
  }
  return {};
}

// Takes the layers one by one. An affine step that cannot be part of a dense layer yet waits in
// pending_.
class Folder {
 public:
  Status take(const TorchLayer& layer) {
    switch (layer.kind) {
      case Kind::kLinear:
        return take_linear(layer);
      case Kind::kRelu:
        return take_relu();
      case Kind::kBatchNorm:
        return take_batch_norm(layer);
      case Kind::kBeginBlock:
        return begin_block();
      case Kind::kEndBlock:
        return end_block();
    }
    return {};
  }

  Result<std::vector<DenseLayer>> finish() {
    if (in_block_) {
      return fail(ErrorCode::kCorrupt, "a residual block does not end");
    }
    if (dense_.empty()) {
      return fail(ErrorCode::kCorrupt, "there is no linear layer");
    }
    FORETUNE_TRY_STATUS(settle_pending());
    for (const DenseLayer& layer : dense_) {
      if (!all_finite(layer.weights) || !all_finite(layer.bias) || !all_finite(layer.scale) ||
          !all_finite(layer.shift)) {
        return fail(ErrorCode::kCorrupt, "a batch normalisation scales by too much for a float");
      }
    }
    return std::move(dense_);
  }

 private:
  enum class Tail : std::uint8_t {
    kStart,  // of the network or a block: the next layer must not change the one before
    kLinear,
    kSum,  // of a block and its input
    kRectified,
  };

  [[nodiscard]] bool has_pending() const { return !pending_.scale.empty(); }

  // `width_` is 0 until the first layer determines it.
  Status expect_width(std::uint32_t inputs) {
    if (width_ != 0 && width_ != inputs) {
      return fail(ErrorCode::kCorrupt, "it takes ", inputs, " values and is given ", width_);
    }
    return {};
  }

  Status take_linear(const TorchLayer& layer) {
    FORETUNE_TRY_STATUS(expect_width(layer.inputs));
    const std::size_t inputs = layer.inputs;
    const std::size_t outputs = layer.outputs;
    DenseLayer dense{.inputs = layer.inputs, .outputs = layer.outputs, .bias = layer.bias};
    dense.weights.resize(inputs * outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      double bias = static_cast<double>(layer.bias[o]);
      for (std::size_t i = 0; i < inputs; ++i) {
        const double weight = static_cast<double>(layer.weight[o * inputs + i]);
        const double scale = has_pending() ? pending_.scale[i] : 1.0;
        dense.weights[i * outputs + o] = static_cast<float>(weight * scale);
        bias += has_pending() ? weight * pending_.shift[i] : 0.0;
      }
      dense.bias[o] = static_cast<float>(bias);
    }
    pending_ = {};
    dense_.push_back(std::move(dense));
    width_ = layer.outputs;
    tail_ = Tail::kLinear;
    ++linear_in_block_;
    return {};
  }

  Status take_relu() {
    if (tail_ == Tail::kStart || has_pending()) {
      return fail(ErrorCode::kUnsupported,
                  "a rectifier is folded only right after a linear layer or a block");
    }
    dense_.back().is_rectified = true;
    tail_ = Tail::kRectified;
    return {};
  }

  Status take_batch_norm(const TorchLayer& layer) {
    FORETUNE_TRY_STATUS(expect_width(layer.inputs));
    const Affine affine = affine_of(layer);
    width_ = layer.outputs;
    if (tail_ == Tail::kLinear && !has_pending()) {
      fold_back(affine);
      return {};
    }
    if (!has_pending()) {
      pending_ = affine;
      return {};
    }
    for (std::size_t i = 0; i < width_; ++i) {
      pending_.scale[i] *= affine.scale[i];
      pending_.shift[i] = pending_.shift[i] * affine.scale[i] + affine.shift[i];
    }
    return {};
  }

  void fold_back(const Affine& affine) {
    DenseLayer& dense = dense_.back();
    for (std::size_t o = 0; o < dense.outputs; ++o) {
      for (std::size_t i = 0; i < dense.inputs; ++i) {
        float& weight = dense.weights[i * dense.outputs + o];
        weight = static_cast<float>(static_cast<double>(weight) * affine.scale[o]);
      }
      dense.bias[o] = static_cast<float>(static_cast<double>(dense.bias[o]) * affine.scale[o] +
                                         affine.shift[o]);
    }
  }

  // Turns the pending affine step into the scale and shift of the last layer.
  Status settle_pending() {
    if (!has_pending()) {
      return {};
    }
    if (dense_.empty()) {
      return fail(ErrorCode::kUnsupported,
                  "a batch normalisation of the inputs in front of a block is not folded");
    }
    dense_.back().scale.assign(pending_.scale.begin(), pending_.scale.end());
    dense_.back().shift.assign(pending_.shift.begin(), pending_.shift.end());
    pending_ = {};
    return {};
  }

  Status begin_block() {
    if (in_block_) {
      return fail(ErrorCode::kUnsupported, "a block inside a block is not folded");
    }
    FORETUNE_TRY_STATUS(settle_pending());
    in_block_ = true;
    linear_in_block_ = 0;
    width_at_begin_ = width_;
    tail_ = Tail::kStart;
    return {};
  }

  Status end_block() {
    if (!in_block_) {
      return fail(ErrorCode::kCorrupt, "a residual block ends that never began");
    }
    if (linear_in_block_ != 2 || tail_ != Tail::kLinear) {
      return fail(ErrorCode::kUnsupported,
                  "only blocks of two linear layers are folded, the "
                  "second without a rectifier");
    }
    const std::uint32_t entered = dense_[dense_.size() - 2].inputs;
    if (entered != width_ || (width_at_begin_ != 0 && width_at_begin_ != width_)) {
      return fail(ErrorCode::kCorrupt, "a block adds ", entered, " values to ", width_);
    }
    dense_.back().adds_skip = true;
    in_block_ = false;
    tail_ = Tail::kSum;
    return {};
  }

  std::vector<DenseLayer> dense_;
  Affine pending_;
  Tail tail_ = Tail::kStart;
  std::uint32_t width_ = 0;
  std::uint32_t width_at_begin_ = 0;
  bool in_block_ = false;
  std::size_t linear_in_block_ = 0;
};

std::vector<double> apply_linear(const TorchLayer& layer, std::span<const double> x) {
  std::vector<double> out(layer.outputs);
  for (std::size_t o = 0; o < out.size(); ++o) {
    double sum = static_cast<double>(layer.bias[o]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += static_cast<double>(layer.weight[o * x.size() + i]) * x[i];
    }
    out[o] = sum;
  }
  return out;
}

// Writes no count, since it follows from the layer's widths.
void put_floats(ByteWriter& writer, std::span<const float> values) {
  writer.put_bytes(std::as_bytes(values));
}

}  // namespace

Result<std::vector<DenseLayer>> fold_layers(std::span<const TorchLayer> layers) {
  Folder folder;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Status status = check_layer(layers[i]);
    if (status) {
      status = folder.take(layers[i]);
    }
    if (!status) {
      return fail_because(status.error(), "layer ", i);
    }
  }
  return folder.finish();
}

std::vector<double> evaluate_layers(std::span<const TorchLayer> layers,
                                    std::span<const double> input) {
  std::vector<double> x(input.begin(), input.end());
  std::vector<double> entered;
  for (const TorchLayer& layer : layers) {
    switch (layer.kind) {
      case Kind::kLinear:
        FORETUNE_CHECK(x.size() == layer.inputs);
        x = apply_linear(layer, x);
        break;
      case Kind::kRelu:
        std::transform(x.begin(), x.end(), x.begin(), [](double v) { return std::max(0.0, v); });
        break;
      case Kind::kBatchNorm:
        FORETUNE_CHECK(x.size() == layer.inputs);
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = (x[i] - static_cast<double>(layer.mean[i])) /
                     std::sqrt(static_cast<double>(layer.variance[i]) + layer.epsilon) *
                     static_cast<double>(layer.weight[i]) +
                 static_cast<double>(layer.bias[i]);
        }
        break;
      case Kind::kBeginBlock:
        entered = x;
        break;
      case Kind::kEndBlock:
        FORETUNE_CHECK(x.size() == entered.size());
        std::transform(x.begin(), x.end(), entered.begin(), x.begin(), std::plus<>());
        break;
    }
  }
  return x;
}

void put_torch_layers(ByteWriter& writer, std::span<const TorchLayer> layers) {
  writer.put_varint(layers.size());
  for (const TorchLayer& layer : layers) {
    writer.put(static_cast<std::uint8_t>(layer.kind));
    if (layer.kind != Kind::kLinear && layer.kind != Kind::kBatchNorm) {
      continue;
    }
    writer.put(layer.inputs, layer.outputs);
    put_floats(writer, layer.weight);
    put_floats(writer, layer.bias);
    if (layer.kind == Kind::kBatchNorm) {
      put_floats(writer, layer.mean);
      put_floats(writer, layer.variance);
      writer.put(layer.epsilon);
    }
  }
}

Result<std::vector<TorchLayer>> get_torch_layers(ByteReader& reader) {
  const std::uint64_t count = reader.get_count(1);
  if (count > kMaxTorchLayers) {
    return fail(ErrorCode::kCorrupt, "it claims ", count, " layers");
  }
  std::vector<TorchLayer> layers(count);
  for (std::size_t i = 0; i < layers.size() && reader.ok(); ++i) {
    TorchLayer& layer = layers[i];
    layer.kind = static_cast<Kind>(reader.get<std::uint8_t>());
    const bool is_norm = layer.kind == Kind::kBatchNorm;
    if (is_norm || layer.kind == Kind::kLinear) {
      layer.inputs = reader.get<std::uint32_t>();
      layer.outputs = reader.get<std::uint32_t>();
      const std::size_t outputs = layer.outputs;
      layer.weight = get_array<float>(reader, is_norm ? outputs : outputs * layer.inputs);
      layer.bias = get_array<float>(reader, outputs);
    }
    if (is_norm) {
      layer.mean = get_array<float>(reader, layer.outputs);
      layer.variance = get_array<float>(reader, layer.outputs);
      layer.epsilon = reader.get<double>();
    }
    if (const Status status = check_layer(layer); reader.ok() && !status) {
      return fail_because(status.error(), "layer ", i);
    }
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its layers are cut off");
  }
  return layers;
}

}  // namespace foretune
