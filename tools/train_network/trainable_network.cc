#include "trainable_network.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <utility>

namespace foretune::network_training {
namespace {

// torch.nn.BatchNorm1d's.
constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;
// In floats: every tensor starts on a cache line, as it would in a buffer of its own.
constexpr std::size_t kAlignment = 16;

std::size_t reserve(std::size_t& count, std::int64_t floats) {
  const std::size_t offset = count;
  count += (static_cast<std::size_t>(floats) + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.detach().to(at::kCPU).contiguous();
  const float* data = host.data_ptr<float>();
  return {data, data + host.numel()};
}

at::Tensor slice(const at::Tensor& buffer, std::size_t offset, at::IntArrayRef sizes) {
  return buffer.narrow(0, static_cast<std::int64_t>(offset), c10::multiply_integers(sizes))
      .view(sizes);
}

// Glorot and Bengio 2010: uniform within sqrt(6 / (inputs + outputs)).
void fill_xavier(const at::Tensor& weights, std::int64_t inputs, std::int64_t outputs,
                 double gain = 1) {
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(inputs + outputs));
  weights.uniform_(-bound, bound);
}

}  // namespace

TrainableNetwork::TrainableNetwork(const TrainOptions& options, const TrainingRows& columns,
                                   at::Device device)
    : dropout_(options.dropout),
      problem_columns_(columns.problem_columns),
      config_columns_(columns.config_columns) {
  const auto inputs = static_cast<std::int64_t>(columns.columns());
  switch (options.architecture) {
    case Architecture::kStandard:
      build_standard(options, inputs);
      break;
    case Architecture::kDeep:
      build_deep(options, inputs);
      break;
    case Architecture::kTwoTower:
      dot_ = options.dot;
      interaction_units_ = options.interaction;
      build_tower(steps_, options, problem_columns_, dot_ + interaction_units_);
      build_tower(config_steps_, options, config_columns_, dot_ + interaction_units_ + 1);
      at_interaction_ = reserve(parameter_count_, interaction_units_);
      break;
  }
  allocate(device);
}

void TrainableNetwork::add(Steps& steps, Kind kind) { steps.push_back({.kind = kind}); }

void TrainableNetwork::add_linear(Steps& steps, std::int64_t inputs, std::int64_t outputs) {
  steps.push_back({.kind = Kind::kLinear,
                   .inputs = inputs,
                   .outputs = outputs,
                   .at_weight = reserve(parameter_count_, inputs * outputs),
                   .at_bias = reserve(parameter_count_, outputs)});
}

void TrainableNetwork::add_norm(Steps& steps, std::int64_t width) {
  steps.push_back({.kind = Kind::kBatchNorm,
                   .inputs = width,
                   .outputs = width,
                   .at_weight = reserve(parameter_count_, width),
                   .at_bias = reserve(parameter_count_, width),
                   .at_mean = reserve(statistic_count_, width),
                   .at_variance = reserve(statistic_count_, width)});
}

std::int64_t TrainableNetwork::add_hidden(Steps& steps, std::int64_t inputs, std::int64_t width) {
  add_linear(steps, inputs, width);
  add(steps, Kind::kRelu);
  add_norm(steps, width);
  add(steps, Kind::kDropout);
  return width;
}

void TrainableNetwork::build_standard(const TrainOptions& options, std::int64_t inputs) {
  for (const std::uint32_t width : options.hidden_dims) {
    inputs = add_hidden(steps_, inputs, width);
  }
  add_linear(steps_, inputs, 1);
}

void TrainableNetwork::build_deep(const TrainOptions& options, std::int64_t inputs) {
  const std::int64_t width = add_hidden(steps_, inputs, options.hidden_dim);
  for (std::uint32_t block = 0; block < options.num_layers; ++block) {
    add(steps_, Kind::kBeginBlock);
    add_hidden(steps_, width, width);
    add_linear(steps_, width, width);
    add_norm(steps_, width);
    add(steps_, Kind::kEndBlock);
    add(steps_, Kind::kRelu);
  }
  add_linear(steps_, width, 1);
}

void TrainableNetwork::build_tower(Steps& steps, const TrainOptions& options, std::int64_t inputs,
                                   std::int64_t outputs) {
  for (std::uint32_t layer = 0; layer < options.tower_layers; ++layer) {
    inputs = add_hidden(steps, inputs, options.hidden_dim);
  }
  add_linear(steps, inputs, outputs);
  // The first scores then vary by about 1, as the target does, instead of by a sum of that many
  // products; the loss of a first epoch was 1.0 instead of 27.8.
  steps.back().gain = std::pow(static_cast<double>(dot_ + interaction_units_), -0.25);
}

void TrainableNetwork::allocate(at::Device device) {
  const at::NoGradGuard no_grad;
  // Filled on the host, so that a seed means the same network on every device.
  parameters_ = at::zeros({static_cast<std::int64_t>(parameter_count_)}, at::kFloat);
  statistics_ = at::zeros({static_cast<std::int64_t>(statistic_count_)}, at::kFloat);
  initialise(steps_);
  initialise(config_steps_);
  if (interaction_units_ > 0) {
    fill_xavier(slice(parameters_, at_interaction_, {interaction_units_}), interaction_units_, 1);
  }
  parameters_ = parameters_.to(device);
  statistics_ = statistics_.to(device);
  gradients_ = at::zeros_like(parameters_);
  make_views(steps_);
  make_views(config_steps_);
  interaction_ = parameter_view(at_interaction_, {interaction_units_});
}

void TrainableNetwork::initialise(const Steps& steps) {
  for (const Step& step : steps) {
    if (step.kind == Kind::kLinear) {
      fill_xavier(slice(parameters_, step.at_weight, {step.outputs, step.inputs}), step.inputs,
                  step.outputs, step.gain);
    } else if (step.kind == Kind::kBatchNorm) {
      slice(parameters_, step.at_weight, {step.outputs}).fill_(1);
      slice(statistics_, step.at_variance, {step.outputs}).fill_(1);
    }
  }
}

at::Tensor TrainableNetwork::parameter_view(std::size_t offset, at::IntArrayRef sizes) const {
  at::Tensor view = slice(parameters_, offset, sizes).detach();
  view.requires_grad_(true);
  // Where a gradient is there already, libtorch adds to it in place.
  view.mutable_grad() = slice(gradients_, offset, sizes);
  return view;
}

void TrainableNetwork::make_views(Steps& steps) {
  for (Step& step : steps) {
    if (step.kind == Kind::kLinear) {
      step.weight = parameter_view(step.at_weight, {step.outputs, step.inputs});
      step.bias = parameter_view(step.at_bias, {step.outputs});
    } else if (step.kind == Kind::kBatchNorm) {
      step.weight = parameter_view(step.at_weight, {step.outputs});
      step.bias = parameter_view(step.at_bias, {step.outputs});
      step.mean = slice(statistics_, step.at_mean, {step.outputs});
      step.variance = slice(statistics_, step.at_variance, {step.outputs});
    }
  }
}

at::Tensor TrainableNetwork::dropped(const at::Tensor& x, Rng& rng) const {
  if (x.is_cuda()) {
    return at::dropout(x, dropout_, true);
  }
  // libtorch draws one number after another from a Mersenne twister, which takes as long as the
  // matrix products; four shares of 2^-16 from one draw of ours do as well.
  at::Tensor mask = at::empty_like(x);
  float* out = mask.data_ptr<float>();
  constexpr double kSteps = 65536;
  const auto threshold = static_cast<std::uint64_t>(std::lround(dropout_ * kSteps));
  const auto kept = static_cast<float>(kSteps / (kSteps - static_cast<double>(threshold)));
  const std::int64_t count = mask.numel();
  for (std::int64_t i = 0; i < count; i += 4) {
    std::uint64_t bits = rng.next();
    for (std::int64_t j = i; j < std::min(i + 4, count); ++j, bits >>= 16U) {
      out[j] = (bits & 0xffffU) < threshold ? 0.0F : kept;
    }
  }
  return x * mask;
}

at::Tensor TrainableNetwork::run(const Steps& steps, at::Tensor x, bool is_training,
                                 Rng& rng) const {
  at::Tensor entered;
  for (const Step& step : steps) {
    switch (step.kind) {
      case Kind::kLinear:
        x = at::linear(x, step.weight, step.bias);
        break;
      case Kind::kRelu:
        x = at::relu(x);
        break;
      case Kind::kBatchNorm:
        x = at::batch_norm(x, step.weight, step.bias, step.mean, step.variance, is_training,
                           kMomentum, kEpsilon, true);
        break;
      case Kind::kDropout:
        x = is_training && dropout_ > 0 ? dropped(x, rng) : x;
        break;
      case Kind::kBeginBlock:
        entered = x;
        break;
      case Kind::kEndBlock:
        x = x + entered;
        break;
    }
  }
  return x;
}

at::Tensor TrainableNetwork::forward(const at::Tensor& inputs, bool is_training, Rng& rng) const {
  if (config_steps_.empty()) {
    return run(steps_, inputs, is_training, rng).squeeze(1);
  }
  const at::Tensor problem = run(steps_, inputs.narrow(1, 0, problem_columns_), is_training, rng);
  const at::Tensor config =
      run(config_steps_, inputs.narrow(1, problem_columns_, config_columns_), is_training, rng);
  at::Tensor score = config.select(1, dot_ + interaction_units_);
  if (dot_ > 0) {
    score = score + (problem.narrow(1, 0, dot_) * config.narrow(1, 0, dot_)).sum(1);
  }
  if (interaction_units_ > 0) {
    const at::Tensor sums =
        problem.narrow(1, dot_, interaction_units_) + config.narrow(1, dot_, interaction_units_);
    score = score + at::relu(sums).mv(interaction_);
  }
  return score;
}

std::vector<TorchLayer> TrainableNetwork::exported(const Steps& steps) {
  constexpr auto kNone = TorchLayer::Kind::kRelu;
  std::vector<TorchLayer> out;
  for (const Step& step : steps) {
    TorchLayer layer{.kind = kNone,
                     .inputs = static_cast<std::uint32_t>(step.inputs),
                     .outputs = static_cast<std::uint32_t>(step.outputs)};
    switch (step.kind) {
      case Kind::kDropout:
        continue;
      case Kind::kRelu:
        break;
      case Kind::kBeginBlock:
        layer.kind = TorchLayer::Kind::kBeginBlock;
        break;
      case Kind::kEndBlock:
        layer.kind = TorchLayer::Kind::kEndBlock;
        break;
      case Kind::kBatchNorm:
        layer.kind = TorchLayer::Kind::kBatchNorm;
        layer.mean = floats_of(step.mean);
        layer.variance = floats_of(step.variance);
        layer.epsilon = kEpsilon;
        break;
      case Kind::kLinear:
        layer.kind = TorchLayer::Kind::kLinear;
        break;
    }
    if (step.weight.defined()) {
      layer.weight = floats_of(step.weight);
      layer.bias = floats_of(step.bias);
    }
    out.push_back(std::move(layer));
  }
  return out;
}

void TrainableNetwork::export_to(TrainedNetwork& out) const {
  out.layers = exported(steps_);
  out.config_layers = exported(config_steps_);
  out.interaction = floats_of(interaction_);
}

}  // namespace foretune::network_training
