#include "time_network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "learner.h"

namespace foretune::policy_training {
namespace {

constexpr std::array<std::int64_t, 2> kHidden = {128, 64};
constexpr std::size_t kBatch = 256;
constexpr double kFirstRate = 2e-3;
// One computation of so many is held out.
constexpr std::uint32_t kHeldOut = 10;
// Schedules that are slower than the fastest of their computation by more than e to this power are
// all the same: slow.
constexpr float kWorst = 2.5F;
constexpr std::size_t kMostPasses = 40;

}  // namespace

TimeRows::TimeRows(const FeatureTable& table, const Hardware& hardware, std::size_t capacity,
                   std::uint64_t seed)
    : table_(table),
      hardware_(hardware),
      capacity_(capacity),
      rng_(seed),
      row_(table.columns().size()) {}

void TimeRows::add(std::size_t task, const Problem& problem, const Config& config,
                   double log_share) {
  std::size_t place = tasks_.size();
  if (++offered_ > capacity_) {
    place = rng_.below(offered_);
    if (place >= capacity_) {
      return;
    }
  } else {
    tasks_.push_back(0);
    log_shares_.push_back(0);
    values_.resize(values_.size() + row_.size());
  }
  feature_row(table_, problem, hardware_, config, row_);
  std::transform(row_.begin(), row_.end(),
                 values_.begin() + static_cast<std::ptrdiff_t>(place * row_.size()),
                 [](double value) { return static_cast<float>(value); });
  log_shares_[place] = static_cast<float>(log_share);
  tasks_[place] = static_cast<std::uint32_t>(task);
}

class TimeTrainer {
 public:
  TimeTrainer(const TimeRows& rows, std::uint64_t seed)
      : rows_(rows), columns_(rows.row_.size()), rng_(seed) {
    find_goals();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (rows.tasks_[i] % kHeldOut == 0 ? held_out_ : learned_).push_back(i);
    }
    standardise();
    build();
  }

  TimeNetwork run(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    FlatAdam adam(parameters_);
    const std::size_t updates = kMostPasses * learned_.size() / kBatch;
    std::vector<std::size_t> order = learned_;
    std::size_t next = order.size();
    for (std::size_t update = 0; update < updates; ++update) {
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count() / seconds;
      const double progress =
          std::max(spent, static_cast<double>(update) / static_cast<double>(updates));
      if (progress >= 1) {
        break;
      }
      if (next + kBatch > order.size()) {
        rng_.shuffle(std::span(order));
        next = 0;
      }
      const auto rows = std::span(order).subspan(next, std::min(kBatch, order.size()));
      next += kBatch;
      const at::Tensor loss = (forward(inputs(rows)) - goals(rows)).square().mean();
      gradients_.zero_();
      loss.backward();
      adam.step(parameters_, gradients_, kFirstRate * std::max(0.01, 1 - progress));
    }
    return {.network = exported(), .residual_std = residual()};
  }

 private:
  void find_goals() {
    std::vector<float> best;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t task = rows_.tasks_[i];
      if (task >= best.size()) {
        best.resize(task + 1, -1e9F);
      }
      best[task] = std::max(best[task], rows_.log_shares_[i]);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      goals_.push_back(-std::max(rows_.log_shares_[i], best[rows_.tasks_[i]] - kWorst));
    }
  }

  void standardise() {
    mean_.assign(columns_, 0);
    inverse_std_.assign(columns_, 1);
    std::vector<double> squares(columns_, 0);
    for (const std::size_t row : learned_) {
      for (std::size_t c = 0; c < columns_; ++c) {
        const auto value = static_cast<double>(rows_.values_[row * columns_ + c]);
        mean_[c] += value;
        squares[c] += value * value;
      }
    }
    const auto count = static_cast<double>(std::max<std::size_t>(1, learned_.size()));
    for (std::size_t c = 0; c < columns_; ++c) {
      mean_[c] /= count;
      const double variance = squares[c] / count - mean_[c] * mean_[c];
      inverse_std_[c] = variance > 1e-8 ? 1 / std::sqrt(variance) : 0;
    }
  }

  void build() {
    const at::NoGradGuard no_grad;
    const std::array<std::int64_t, 4> widths = {static_cast<std::int64_t>(columns_), kHidden[0],
                                                kHidden[1], 1};
    std::int64_t floats = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      floats += widths[i] * widths[i + 1] + widths[i + 1];
    }
    parameters_ = at::zeros({floats}, at::kFloat);
    gradients_ = at::zeros({floats}, at::kFloat);
    std::int64_t offset = 0;
    const auto view = [&](at::IntArrayRef sizes) {
      const std::int64_t size = c10::multiply_integers(sizes);
      at::Tensor out = parameters_.narrow(0, offset, size).view(sizes).detach();
      out.requires_grad_(true);
      out.mutable_grad() = gradients_.narrow(0, offset, size).view(sizes);
      offset += size;
      return out;
    };
    for (std::size_t i = 0; i < 3; ++i) {
      const double scale = std::sqrt(2.0 / static_cast<double>(widths[i]));
      float* const weights = parameters_.data_ptr<float>() + offset;
      for (std::int64_t k = 0; k < widths[i] * widths[i + 1]; ++k) {
        weights[k] = static_cast<float>(scale * rng_.normal());
      }
      weights_[i] = view({widths[i + 1], widths[i]});
      bias_[i] = view({widths[i + 1]});
    }
  }

  [[nodiscard]] at::Tensor inputs(std::span<const std::size_t> rows) const {
    at::Tensor out = at::empty(
        {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns_)}, at::kFloat);
    auto* to = out.data_ptr<float>();
    for (const std::size_t row : rows) {
      for (std::size_t c = 0; c < columns_; ++c) {
        *to++ = static_cast<float>(
            (static_cast<double>(rows_.values_[row * columns_ + c]) - mean_[c]) * inverse_std_[c]);
      }
    }
    return out;
  }
  [[nodiscard]] at::Tensor goals(std::span<const std::size_t> rows) const {
    at::Tensor out = at::empty({static_cast<std::int64_t>(rows.size())}, at::kFloat);
    auto* to = out.data_ptr<float>();
    for (const std::size_t row : rows) {
      *to++ = goals_[row];
    }
    return out;
  }
  [[nodiscard]] at::Tensor forward(at::Tensor x) const {
    x = at::relu(at::linear(x, weights_[0], bias_[0]));
    x = at::relu(at::linear(x, weights_[1], bias_[1]));
    return at::linear(x, weights_[2], bias_[2]).squeeze(1);
  }

  [[nodiscard]] double residual() const {
    const at::NoGradGuard no_grad;
    const std::vector<std::size_t>& rows = held_out_.empty() ? learned_ : held_out_;
    double squares = 0;
    for (std::size_t first = 0; first < rows.size(); first += kBatch) {
      const auto some = std::span(rows).subspan(first, std::min(kBatch, rows.size() - first));
      squares += (forward(inputs(some)) - goals(some)).square().sum().item<double>();
    }
    return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, rows.size())));
  }

  [[nodiscard]] Network exported() const {
    Network network;
    network.architecture = "standard";
    for (std::size_t c = 0; c < columns_; ++c) {
      network.inputs.push_back({.column = static_cast<std::uint16_t>(c),
                                .mean = mean_[c],
                                .inverse_std = inverse_std_[c]});
    }
    network.problem_inputs =
        static_cast<std::uint32_t>(feature_count(rows_.table_, FeatureKind::kProblem));
    network.config_inputs =
        static_cast<std::uint32_t>(feature_count(rows_.table_, FeatureKind::kConfig));
    for (std::size_t i = 0; i < 3; ++i) {
      DenseLayer layer{.inputs = static_cast<std::uint32_t>(weights_[i].size(1)),
                       .outputs = static_cast<std::uint32_t>(weights_[i].size(0)),
                       .is_rectified = i + 1 < 3};
      const at::Tensor weight = weights_[i].detach().t().contiguous();
      layer.weights.assign(weight.data_ptr<float>(), weight.data_ptr<float>() + weight.numel());
      const at::Tensor bias = bias_[i].detach().contiguous();
      layer.bias.assign(bias.data_ptr<float>(), bias.data_ptr<float>() + bias.numel());
      network.layers.push_back(std::move(layer));
    }
    return network;
  }

  const TimeRows& rows_;
  std::size_t columns_;
  Rng rng_;
  std::vector<float> goals_;
  std::vector<std::size_t> learned_;
  std::vector<std::size_t> held_out_;
  std::vector<double> mean_;
  std::vector<double> inverse_std_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  std::array<at::Tensor, 3> weights_;
  std::array<at::Tensor, 3> bias_;
};

Network unknown_times(const FeatureTable& table) {
  Network network;
  network.architecture = "none";
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    network.inputs.push_back({.column = static_cast<std::uint16_t>(c)});
  }
  network.problem_inputs = static_cast<std::uint32_t>(feature_count(table, FeatureKind::kProblem));
  network.config_inputs = static_cast<std::uint32_t>(feature_count(table, FeatureKind::kConfig));
  DenseLayer layer{.inputs = static_cast<std::uint32_t>(network.inputs.size()), .outputs = 1};
  layer.weights.resize(layer.inputs);
  layer.bias.resize(1);
  network.layers.push_back(std::move(layer));
  return network;
}

Result<TimeNetwork> train_time_network(const TimeRows& rows, double seconds, std::uint64_t seed) {
  if (rows.size() < kBatch) {
    return fail(ErrorCode::kInvalidArgument, rows.size(),
                " measured schedules are too few to learn their times from");
  }
  return TimeTrainer(rows, seed).run(seconds);
}

}  // namespace foretune::policy_training
