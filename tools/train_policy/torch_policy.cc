#include "torch_policy.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "foretune/base/rng.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/policy_observation.h"

namespace foretune::policy_training {
namespace {

using loop::LoopActions;
using loop::PolicyObserver;

constexpr std::size_t kLoopFloats = LoopActions::kLevels * PolicyObserver::kLoopColumns;
constexpr std::size_t kWholeFloats = PolicyObserver::kWholeColumns;
constexpr double kIllegal = -1e9;

at::Tensor part(const at::Tensor& buffer, std::int64_t offset, at::IntArrayRef sizes) {
  return buffer.narrow(0, offset, c10::multiply_integers(sizes)).view(sizes);
}

}  // namespace

void StateRows::append(std::span<const float> loop_row, std::span<const float> whole_row,
                       std::span<const std::uint8_t> mask, std::uint8_t count) {
  loops.insert(loops.end(), loop_row.begin(), loop_row.end());
  whole.insert(whole.end(), whole_row.begin(), whole_row.end());
  masks.insert(masks.end(), mask.begin(), mask.end());
  counts.push_back(count);
}

void StateRows::append(const StateRows& other, std::size_t row) {
  append(std::span(other.loops).subspan(row * kLoopFloats, kLoopFloats),
         std::span(other.whole).subspan(row * kWholeFloats, kWholeFloats),
         std::span(other.masks).subspan(row * LoopActions::kCount, LoopActions::kCount),
         other.counts[row]);
}

void StateRows::resize(std::size_t rows) {
  loops.resize(rows * kLoopFloats);
  whole.resize(rows * kWholeFloats);
  masks.resize(rows * LoopActions::kCount);
  counts.resize(rows);
}

void StateRows::assign(std::size_t row, const StateRows& other, std::size_t from) {
  std::copy_n(other.loops.data() + from * kLoopFloats, kLoopFloats,
              loops.data() + row * kLoopFloats);
  std::copy_n(other.whole.data() + from * kWholeFloats, kWholeFloats,
              whole.data() + row * kWholeFloats);
  std::copy_n(other.masks.data() + from * LoopActions::kCount, LoopActions::kCount,
              masks.data() + row * LoopActions::kCount);
  counts[row] = other.counts[from];
}

StateBatch batch_of(const StateRows& rows, std::span<const std::size_t> chosen) {
  const auto count = static_cast<std::int64_t>(chosen.size());
  std::size_t levels = 1;
  for (const std::size_t row : chosen) {
    levels = std::max<std::size_t>(levels, rows.counts[row]);
  }
  const std::size_t floats = levels * PolicyObserver::kLoopColumns;
  StateBatch batch;
  batch.loops = at::empty({count, static_cast<std::int64_t>(levels),
                           static_cast<std::int64_t>(PolicyObserver::kLoopColumns)},
                          at::kFloat);
  batch.whole = at::empty({count, static_cast<std::int64_t>(kWholeFloats)}, at::kFloat);
  batch.valid = at::zeros({count, static_cast<std::int64_t>(levels)}, at::kFloat);
  batch.masks = at::empty({count, static_cast<std::int64_t>(LoopActions::kCount)}, at::kBool);
  auto* const loops = batch.loops.data_ptr<float>();
  auto* const whole = batch.whole.data_ptr<float>();
  auto* const valid = batch.valid.data_ptr<float>();
  auto* const masks = batch.masks.data_ptr<bool>();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::size_t row = chosen[i];
    std::copy_n(rows.loops.data() + row * kLoopFloats, floats, loops + i * floats);
    std::copy_n(rows.whole.data() + row * kWholeFloats, kWholeFloats, whole + i * kWholeFloats);
    std::fill_n(valid + i * levels, rows.counts[row], 1.0F);
    std::transform(
        rows.masks.begin() + static_cast<std::ptrdiff_t>(row * LoopActions::kCount),
        rows.masks.begin() + static_cast<std::ptrdiff_t>((row + 1) * LoopActions::kCount),
        masks + i * LoopActions::kCount, [](std::uint8_t legal) { return legal != 0; });
  }
  return batch;
}

TorchPolicy::TorchPolicy(std::uint32_t width, std::uint64_t seed) : width_(width) {
  const at::NoGradGuard no_grad;
  const PolicyNetwork shape = PolicyNetwork::of_width(width);
  std::int64_t floats = 0;
  for (const DenseLayer* const layer : shape.layers()) {
    floats += static_cast<std::int64_t>(layer->weights.size() + layer->bias.size());
  }
  parameters_ = at::zeros({floats}, at::kFloat);
  gradients_ = at::zeros({floats}, at::kFloat);
  Rng rng(seed);
  std::int64_t offset = 0;
  const auto view = [&](std::int64_t at, at::IntArrayRef sizes) {
    at::Tensor out = part(parameters_, at, sizes).detach();
    out.requires_grad_(true);
    out.mutable_grad() = part(gradients_, at, sizes);
    return out;
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const DenseLayer& layer = *shape.layers()[i];
    const auto inputs = static_cast<std::int64_t>(layer.inputs);
    const auto outputs = static_cast<std::int64_t>(layer.outputs);
    // He et al. 2015; the last layers begin near 0, so that all actions begin alike.
    const double scale = layer.is_rectified ? std::sqrt(2.0 / static_cast<double>(inputs)) : 0.01;
    float* const weights = parameters_.data_ptr<float>() + offset;
    for (std::int64_t k = 0; k < inputs * outputs; ++k) {
      weights[k] = static_cast<float>(scale * rng.normal());
    }
    layers_[i].weight = view(offset, {outputs, inputs});
    offset += inputs * outputs;
    layers_[i].bias = view(offset, {outputs});
    offset += outputs;
  }
}

TorchPolicy::Output TorchPolicy::forward(const StateBatch& batch) const {
  const std::int64_t count = batch.loops.size(0);
  const std::int64_t levels = batch.loops.size(1);
  const at::Tensor valid = batch.valid.unsqueeze(2);
  const auto dense = [&](std::size_t layer, const at::Tensor& x) {
    return at::linear(x, layers_[layer].weight, layers_[layer].bias);
  };
  const at::Tensor whole =
      batch.whole.unsqueeze(1).expand({count, levels, static_cast<std::int64_t>(kWholeFloats)});
  const at::Tensor h = at::relu(dense(0, at::cat({batch.loops, whole}, 2))) * valid;
  const at::Tensor sums = h.cumsum(1);
  const at::Tensor around = (sums - h) * PolicyNetwork::kSumScale;
  const at::Tensor inside = (sums.narrow(1, levels - 1, 1) - sums) * PolicyNetwork::kSumScale;
  const at::Tensor none = at::zeros({count, 1, static_cast<std::int64_t>(width_)}, at::kFloat);
  const at::Tensor outer = at::cat({none, h.narrow(1, 0, levels - 1)}, 1);
  const at::Tensor inner = at::cat({h.narrow(1, 1, levels - 1), none}, 1);
  const at::Tensor g = at::relu(dense(1, at::cat({h, around, inside, outer, inner}, 2))) * valid;
  const at::Tensor heads =
      dense(2, g).reshape({count, levels * static_cast<std::int64_t>(LoopActions::kOperations)});
  const at::Tensor mean = g.sum(1) / batch.valid.sum(1, true).clamp_min(1);
  const at::Tensor out = dense(4, at::relu(dense(3, at::cat({mean, batch.whole}, 1))));
  const auto rest = static_cast<std::int64_t>(LoopActions::kStop) - heads.size(1);
  std::vector<at::Tensor> actions{heads};
  if (rest > 0) {
    actions.push_back(at::zeros({count, rest}, at::kFloat));
  }
  actions.push_back(out.narrow(1, 0, 1));
  return {.actions = at::cat(actions, 1), .value = out.select(1, 1)};
}

at::Tensor TorchPolicy::log_probabilities(const Output& output, const StateBatch& batch) {
  return at::log_softmax(output.actions.masked_fill(batch.masks.logical_not(), kIllegal), 1);
}

PolicyNetwork TorchPolicy::exported() const {
  PolicyNetwork network = PolicyNetwork::of_width(width_);
  const std::vector<DenseLayer*> layers = network.layers();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const at::Tensor weight = layers_[i].weight.detach().t().contiguous();
    std::copy_n(weight.data_ptr<float>(), weight.numel(), layers[i]->weights.begin());
    const at::Tensor bias = layers_[i].bias.detach().contiguous();
    std::copy_n(bias.data_ptr<float>(), bias.numel(), layers[i]->bias.begin());
  }
  return network;
}

void TorchPolicy::import(const PolicyNetwork& network) {
  const at::NoGradGuard no_grad;
  const std::vector<const DenseLayer*> layers = network.layers();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    std::vector<float> weights = layers[i]->weights;
    std::vector<float> bias = layers[i]->bias;
    const std::int64_t inputs = layers[i]->inputs;
    const std::int64_t outputs = layers[i]->outputs;
    layers_[i].weight.copy_(at::from_blob(weights.data(), {inputs, outputs}, at::kFloat).t());
    layers_[i].bias.copy_(at::from_blob(bias.data(), {outputs}, at::kFloat));
  }
}

}  // namespace foretune::policy_training
