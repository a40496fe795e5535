// The network of a policy (foretune/model/policy/policy_network.h) as libtorch trains it: one flat
// buffer of parameters and the forward pass over a batch of states.
//
// Thread safety: one thread at a time. Errors: libtorch's exceptions.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/model/policy/policy_network.h"

namespace foretune::policy_training {

// States one behind another, as PolicyObserver and LoopActions write them.
struct StateBatch {
  at::Tensor loops;  // f32 [states][levels][loop columns]; levels: as many as any state has
  at::Tensor whole;  // f32 [states][whole columns]
  at::Tensor valid;  // f32 [states][levels]: 1 where there is a loop
  at::Tensor masks;  // bool [states][actions]
};

// Rows of states as actors store them.
struct StateRows {
  std::vector<float> loops;
  std::vector<float> whole;
  std::vector<std::uint8_t> masks;
  std::vector<std::uint8_t> counts;
  [[nodiscard]] std::size_t size() const { return counts.size(); }
  void append(std::span<const float> loop_row, std::span<const float> whole_row,
              std::span<const std::uint8_t> mask, std::uint8_t count);
  void append(const StateRows& other, std::size_t row);
  // Overwrites a row.
  void assign(std::size_t row, const StateRows& other, std::size_t from);
  void resize(std::size_t rows);
};

StateBatch batch_of(const StateRows& rows, std::span<const std::size_t> chosen);

class TorchPolicy {
 public:
  TorchPolicy(std::uint32_t width, std::uint64_t seed);

  struct Output {
    at::Tensor actions;  // [states][LoopActions::kCount]; those of illegal actions mean nothing
    at::Tensor value;    // [states]
  };
  [[nodiscard]] Output forward(const StateBatch& batch) const;
  // ln of the probability of every action, -1e9 for illegal ones.
  [[nodiscard]] static at::Tensor log_probabilities(const Output& output, const StateBatch& batch);

  [[nodiscard]] at::Tensor parameters() const { return parameters_; }
  [[nodiscard]] at::Tensor gradients() const { return gradients_; }
  [[nodiscard]] PolicyNetwork exported() const;
  // The network has the same width.
  void import(const PolicyNetwork& network);

 private:
  struct Layer {
    at::Tensor weight;  // [outputs][inputs]
    at::Tensor bias;
  };
  std::uint32_t width_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  std::array<Layer, 5> layers_;
};

}  // namespace foretune::policy_training
