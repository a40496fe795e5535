#include "foretune/model/train/internal/distilled_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foretune::train_internal {
namespace {

// Returns the weight of a candidate's squared error by its regret. A candidate that is never picked
// needs no exact prediction.
float error_weight(float regret) { return 0.05F + std::exp(-regret / 0.15F); }

// y[rows x n] += x[rows x k] * w[k x n]. The inner loop runs along rows of both, which compilers
// vectorise.
void multiply_add(const float* x, const float* w, float* y, std::size_t rows, std::size_t k,
                  std::size_t n) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < k; ++i) {
      const float factor = x[r * k + i];
      if (factor != 0) {
        for (std::size_t j = 0; j < n; ++j) {
          y[r * n + j] += factor * w[i * n + j];
        }
      }
    }
  }
}

// A tensor with its gradient and Adam's moments.
class Parameter {
 public:
  explicit Parameter(std::vector<float>& values)
      : values_(values), gradient_(values.size()), first_(values.size()), second_(values.size()) {}

  std::vector<float>& gradient() { return gradient_; }

  void step(double rate, double first_correction, double second_correction) {
    const auto scale = static_cast<float>(rate / first_correction);
    const auto root = static_cast<float>(1 / second_correction);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      first_[i] = kFirst * first_[i] + (1 - kFirst) * gradient_[i];
      second_[i] = kSecond * second_[i] + (1 - kSecond) * gradient_[i] * gradient_[i];
      values_[i] -= scale * first_[i] / (std::sqrt(second_[i] * root) + 1e-8F);
    }
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  }
  static constexpr float kFirst = 0.9F;
  static constexpr float kSecond = 0.999F;

 private:
  std::vector<float>& values_;
  std::vector<float> gradient_;
  std::vector<float> first_;
  std::vector<float> second_;
};

class PredictorTrainer {
 public:
  PredictorTrainer(const NetworkExamples& examples, const NetworkOptions& options,
                   std::vector<NetworkLayer>& layers)
      : examples_(examples), options_(options), layers_(layers) {
    for (NetworkLayer& layer : layers_) {
      weights_.emplace_back(layer.weights);
      biases_.emplace_back(layer.bias);
    }
    values_.resize(layers_.size() + 1);
  }

  void step(std::span<const std::uint32_t> rows, double rate) {
    forward(rows);
    loss_gradient(rows);
    backward(rows.size());
    ++steps_;
    const double first = 1 - std::pow(static_cast<double>(Parameter::kFirst), steps_);
    const double second = 1 - std::pow(static_cast<double>(Parameter::kSecond), steps_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      weights_[l].step(rate, first, second);
      biases_[l].step(rate, first, second);
    }
  }

 private:
  void forward(std::span<const std::uint32_t> rows) {
    std::vector<float>& input = values_[0];
    input.clear();
    for (const std::uint32_t row : rows) {
      const auto from =
          examples_.input.begin() + static_cast<std::ptrdiff_t>(row * examples_.inputs);
      input.insert(input.end(), from, from + static_cast<std::ptrdiff_t>(examples_.inputs));
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const NetworkLayer& layer = layers_[l];
      std::vector<float>& out = values_[l + 1];
      out.resize(rows.size() * layer.outputs);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::copy(layer.bias.begin(), layer.bias.end(),
                  out.begin() + static_cast<std::ptrdiff_t>(r * layer.outputs));
      }
      multiply_add(values_[l].data(), layer.weights.data(), out.data(), rows.size(), layer.inputs,
                   layer.outputs);
      if (l + 1 < layers_.size()) {
        std::transform(out.begin(), out.end(), out.begin(),
                       [](float value) { return std::max(value, 0.0F); });
      }
    }
  }

  // Computes the gradient of the expected regret sum(p y) with p = softmax(-score / temperature),
  // mixed with the squared error.
  void loss_gradient(std::span<const std::uint32_t> rows) {
    const std::size_t width = examples_.outputs;
    const auto temperature = static_cast<float>(options_.temperature);
    const auto share = static_cast<float>(options_.squared_share);
    const float per_row = 1.0F / static_cast<float>(rows.size());
    std::vector<float>& scores = values_.back();
    gradient_.assign(scores.size(), 0.0F);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const float* regret = examples_.regret.data() + rows[r] * width;
      const float* score = scores.data() + r * width;
      float lowest = INFINITY;
      for (std::size_t j = 0; j < width; ++j) {
        lowest = std::isnan(regret[j]) ? lowest : std::min(lowest, score[j]);
      }
      float total = 0;
      float expected = 0;
      for (std::size_t j = 0; j < width; ++j) {
        if (!std::isnan(regret[j])) {
          const float chance = std::exp((lowest - score[j]) / temperature);
          gradient_[r * width + j] = chance;
          total += chance;
          expected += chance * regret[j];
        }
      }
      for (std::size_t j = 0; j < width; ++j) {
        if (!std::isnan(regret[j])) {
          float& place = gradient_[r * width + j];
          const float pull = -place / total * (regret[j] - expected / total) / temperature;
          place = per_row * (pull + share * error_weight(regret[j]) * (score[j] - regret[j]));
        }
      }
    }
  }

  void backward(std::size_t rows) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const NetworkLayer& layer = layers_[l];
      for (std::size_t r = 0; r < rows; ++r) {
        const float* out = gradient_.data() + r * layer.outputs;
        for (std::size_t j = 0; j < layer.outputs; ++j) {
          biases_[l].gradient()[j] += out[j];
        }
        for (std::size_t i = 0; i < layer.inputs; ++i) {
          const float value = values_[l][r * layer.inputs + i];
          float* place = weights_[l].gradient().data() + i * layer.outputs;
          for (std::size_t j = 0; value != 0 && j < layer.outputs; ++j) {
            place[j] += value * out[j];
          }
        }
      }
      if (l == 0) {
        return;
      }
      transposed_.resize(layer.weights.size());
      for (std::size_t i = 0; i < layer.inputs; ++i) {
        for (std::size_t j = 0; j < layer.outputs; ++j) {
          transposed_[j * layer.inputs + i] = layer.weights[i * layer.outputs + j];
        }
      }
      below_.assign(rows * layer.inputs, 0.0F);
      multiply_add(gradient_.data(), transposed_.data(), below_.data(), rows, layer.outputs,
                   layer.inputs);
      for (std::size_t i = 0; i < below_.size(); ++i) {
        below_[i] = values_[l][i] > 0 ? below_[i] : 0.0F;
      }
      std::swap(gradient_, below_);
    }
  }

  const NetworkExamples& examples_;
  const NetworkOptions& options_;
  std::vector<NetworkLayer>& layers_;
  std::vector<Parameter> weights_;
  std::vector<Parameter> biases_;
  std::vector<std::vector<float>> values_;
  std::vector<float> gradient_;
  std::vector<float> below_;
  std::vector<float> transposed_;
  double steps_ = 0;
};

// Initialises hidden layers as He et al. 2015. The last starts near 0, so that all candidates are
// equal.
NetworkLayer random_layer(std::size_t inputs, std::size_t outputs, double gain, Rng& rng) {
  NetworkLayer layer{.inputs = inputs, .outputs = outputs};
  layer.weights.resize(inputs * outputs);
  layer.bias.assign(outputs, 0.0F);
  const double deviation = gain * std::sqrt(2.0 / static_cast<double>(inputs));
  for (float& weight : layer.weights) {
    weight = static_cast<float>(deviation * rng.normal());
  }
  return layer;
}

}  // namespace

std::vector<NetworkLayer> train_network(const NetworkExamples& examples,
                                        const NetworkOptions& options, Rng& rng) {
  std::vector<NetworkLayer> layers;
  layers.push_back(random_layer(examples.inputs, options.hidden, 1, rng));
  layers.push_back(random_layer(options.hidden, options.hidden, 1, rng));
  layers.push_back(random_layer(options.hidden, examples.outputs, 0.1, rng));
  PredictorTrainer trainer(examples, options, layers);
  std::vector<std::uint32_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    rng.shuffle(std::span(order));
    // The learning rate falls to zero along half a cosine (Loshchilov and Hutter 2017).
    const double done = static_cast<double>(epoch) / options.epochs;
    const double rate = options.learning_rate * 0.5 * (1 + std::cos(3.141592653589793 * done));
    for (std::size_t first = 0; first < order.size(); first += options.batch) {
      trainer.step(std::span(order).subspan(first, std::min(options.batch, order.size() - first)),
                   rate);
    }
  }
  return layers;
}

std::vector<std::vector<float>> network_values(std::span<const NetworkLayer> layers,
                                               std::span<const float> input) {
  std::vector<std::vector<float>> out;
  std::vector<float> values(input.begin(), input.end());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<float> next = layers[l].bias;
    multiply_add(values.data(), layers[l].weights.data(), next.data(), 1, layers[l].inputs,
                 layers[l].outputs);
    for (float& value : next) {
      value = l + 1 < layers.size() ? std::max(value, 0.0F) : value;
    }
    out.push_back(next);
    values = std::move(next);
  }
  return out;
}

}  // namespace foretune::train_internal
