// A small network trained to rank: dense layers with ReLU between them, Adam (Kingma and Ba 2015),
// and as loss the expected regret of a pick drawn by the softmax of the scores, plus a little
// squared error that keeps the scores in units of ln time. Internal to the trainer.
// Thread safety: free functions without state. Cost: seconds for 16,000 examples of 64 outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::train_internal {

struct NetworkLayer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<float> weights;  // `outputs` for each input, one input after another
  std::vector<float> bias;
};

// Row by row. A regret is NaN where the candidate is not legal.
struct NetworkExamples {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<float> input;
  std::vector<float> regret;  // ln time over the best, at most kMaxRegret
  [[nodiscard]] std::size_t size() const { return input.size() / inputs; }
};
// Beyond this one bad pick is as bad as another.
inline constexpr float kMaxRegret = 0.5F;

struct NetworkOptions {
  std::size_t hidden = 48;
  std::uint32_t epochs = 40;
  std::size_t batch = 64;
  double learning_rate = 3e-3;
  double temperature = 0.03;   // of the softmax, in ln time
  double squared_share = 0.1;  // weight of the squared error beside the expected regret
};

// Two hidden layers and one of scores, lower being better.
std::vector<NetworkLayer> train_network(const NetworkExamples& examples,
                                        const NetworkOptions& options, Rng& rng);

// The values after each layer of one example; those of hidden layers after ReLU.
std::vector<std::vector<float>> network_values(std::span<const NetworkLayer> layers,
                                               std::span<const float> input);

}  // namespace foretune::train_internal
