// A network in training: its layers as tensors that libtorch differentiates, all views into one
// buffer of parameters, one of gradients and one of statistics, so that an optimiser's step, a copy
// of the best weights and a checkpoint are each one operation instead of one per layer.
//
//   TrainableNetwork network(shape, device);             // Xavier, by libtorch's generator
//   const at::Tensor score = network.forward(rows, true);
//   loss_of(score).backward();                           // into network.gradients()
//
// Thread safety: one thread at a time (libtorch shares the work). Errors: libtorch's exceptions.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/model/train/files/training_files.h"
#include "options.h"

namespace foretune::network_training {

class TrainableNetwork {
 public:
  TrainableNetwork(const TrainOptions& options, const TrainingRows& columns, at::Device device);

  // One output per row of `inputs`; in training dropout draws from `rng` and the running statistics
  // move.
  at::Tensor forward(const at::Tensor& inputs, bool is_training, Rng& rng) const;

  [[nodiscard]] const at::Tensor& parameters() const { return parameters_; }
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }
  [[nodiscard]] const at::Tensor& statistics() const { return statistics_; }

  // Fills in layers, config_layers and interaction.
  void export_to(TrainedNetwork& out) const;

 private:
  enum class Kind : std::uint8_t { kLinear, kRelu, kBatchNorm, kDropout, kBeginBlock, kEndBlock };
  struct Step {
    Kind kind = Kind::kRelu;
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    double gain = 1;            // of the first weights
    std::size_t at_weight = 0;  // in the buffers
    std::size_t at_bias = 0;
    std::size_t at_mean = 0;
    std::size_t at_variance = 0;
    at::Tensor weight;
    at::Tensor bias;
    at::Tensor mean;
    at::Tensor variance;
  };
  using Steps = std::vector<Step>;

  void add_linear(Steps& steps, std::int64_t inputs, std::int64_t outputs);
  void add_norm(Steps& steps, std::int64_t width);
  static void add(Steps& steps, Kind kind);
  std::int64_t add_hidden(Steps& steps, std::int64_t inputs, std::int64_t width);
  void build_standard(const TrainOptions& options, std::int64_t inputs);
  void build_deep(const TrainOptions& options, std::int64_t inputs);
  void build_tower(Steps& steps, const TrainOptions& options, std::int64_t inputs,
                   std::int64_t outputs);
  void allocate(at::Device device);
  void initialise(const Steps& steps);
  void make_views(Steps& steps);
  at::Tensor parameter_view(std::size_t offset, at::IntArrayRef sizes) const;
  at::Tensor run(const Steps& steps, at::Tensor x, bool is_training, Rng& rng) const;
  at::Tensor dropped(const at::Tensor& x, Rng& rng) const;
  static std::vector<TorchLayer> exported(const Steps& steps);

  double dropout_;
  std::int64_t problem_columns_;
  std::int64_t config_columns_;
  std::int64_t dot_ = 0;
  std::int64_t interaction_units_ = 0;
  Steps steps_;         // of the chain, or of the problem's tower
  Steps config_steps_;  // of the config's tower
  std::size_t at_interaction_ = 0;
  at::Tensor interaction_;
  std::size_t parameter_count_ = 0;
  std::size_t statistic_count_ = 0;
  at::Tensor parameters_;
  at::Tensor gradients_;
  at::Tensor statistics_;
};

}  // namespace foretune::network_training
