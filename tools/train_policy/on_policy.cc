// Learners that follow the policy: one loss with parts that the algorithms switch on and off.
//
//            returns            ratio      passes
//   ppo      GAE                clipped    several
//   appo     V-trace            clipped    one
//   impala   V-trace            none       one
//   a2c, a3c GAE                none       one
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "foretune/base/rng.h"
#include "learner.h"

namespace foretune::policy_training {
namespace {

constexpr double kValueShare = 0.5;
constexpr double kClip = 0.2;
// V-trace's bounds of the ratios of probabilities.
constexpr float kTrace = 1;

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

template <class T>
at::Tensor chosen_of(const std::vector<T>& values, std::span<const std::size_t> rows,
                     at::ScalarType type) {
  std::vector<double> picked;
  picked.reserve(rows.size());
  for (const std::size_t row : rows) {
    picked.push_back(static_cast<double>(values[row]));
  }
  return at::from_blob(picked.data(), {static_cast<std::int64_t>(picked.size())}, at::kDouble)
      .to(type, false, true);
}

class OnPolicyLearner final : public Learner {
 public:
  OnPolicyLearner(TorchPolicy& policy, const TrainPolicyOptions& options)
      : policy_(policy), options_(options), adam_(policy.parameters()) {
    is_clipped_ = options.algorithm == Algorithm::kPpo || options.algorithm == Algorithm::kAppo;
    has_trace_ = options.algorithm == Algorithm::kImpala || options.algorithm == Algorithm::kAppo;
    passes_ = options.algorithm == Algorithm::kPpo ? options.passes : 1;
  }

  LearnStats learn(const std::vector<Segment>& segments, const Elites& elites, double progress,
                   std::uint64_t seed) override {
    Rng rng(seed);
    begin();
    for (const Segment& segment : segments) {
      add(segment);
    }
    normalise();
    LearnStats stats;
    double batches = 0;
    for (std::uint32_t pass = 0; pass < passes_; ++pass) {
      std::vector<std::size_t> order = numbers(actions_.size());
      rng.shuffle(std::span(order));
      for (std::size_t first = 0; first < order.size(); first += options_.batch) {
        const std::size_t size = std::min<std::size_t>(options_.batch, order.size() - first);
        update(std::span(order).subspan(first, size), elites, progress, rng, stats);
        ++batches;
      }
    }
    stats.loss /= std::max(1.0, batches);
    stats.value_loss /= std::max(1.0, batches);
    stats.entropy /= std::max(1.0, batches);
    return stats;
  }
  FlatAdam& optimizer() override { return adam_; }

 private:
  void begin() {
    states_ = {};
    actions_.clear();
    old_.clear();
    returns_.clear();
    advantages_.clear();
  }

  // The view that the policy of now has of a segment played by an older one.
  struct Now {
    std::vector<float> values;
    std::vector<float> ratios;
  };
  [[nodiscard]] Now now(const Segment& segment) const {
    const at::NoGradGuard no_grad;
    Now out{.values = {}, .ratios = {}};
    constexpr std::size_t kChunk = 1024;
    const std::vector<std::size_t> all = numbers(segment.states.size());
    for (std::size_t first = 0; first < all.size(); first += kChunk) {
      const auto rows = std::span(all).subspan(first, std::min(kChunk, all.size() - first));
      const StateBatch batch = batch_of(segment.states, rows);
      const TorchPolicy::Output output = policy_.forward(batch);
      const at::Tensor values = output.value.contiguous();
      out.values.insert(out.values.end(), values.data_ptr<float>(),
                        values.data_ptr<float>() + values.numel());
      const at::Tensor logs = TorchPolicy::log_probabilities(output, batch).contiguous();
      for (std::size_t i = 0; i < rows.size() && rows[i] < segment.actions.size(); ++i) {
        const float log =
            logs.data_ptr<float>()[i * loop::LoopActions::kCount + segment.actions[rows[i]]];
        out.ratios.push_back(std::exp(log - segment.log_probabilities[rows[i]]));
      }
    }
    return out;
  }

  void add(const Segment& segment) {
    const std::size_t columns = segment.episodes;
    Now now;
    if (has_trace_) {
      now = this->now(segment);
    } else {
      now.values = segment.values;
    }
    std::vector<float> returns(segment.actions.size());
    std::vector<float> advantages(segment.actions.size());
    const auto gamma = static_cast<float>(options_.gamma);
    const auto lambda = static_cast<float>(options_.lambda);
    for (std::size_t e = 0; e < columns; ++e) {
      float trace = 0;
      float next_target = now.values[segment.steps * columns + e];
      for (std::size_t t = segment.steps; t-- > 0;) {
        const std::size_t row = t * columns + e;
        const bool is_end = segment.ends[row] != 0;
        const float next_value = is_end ? 0 : now.values[row + columns];
        const float difference = segment.rewards[row] + gamma * next_value - now.values[row];
        if (has_trace_) {
          const float ratio = std::min(kTrace, now.ratios[row]);
          const float after = is_end ? 0 : next_target;
          advantages[row] = ratio * (segment.rewards[row] + gamma * after - now.values[row]);
          trace = ratio * difference + (is_end ? 0 : gamma * ratio * trace);
          returns[row] = now.values[row] + trace;
          next_target = returns[row];
        } else {
          trace = difference + (is_end ? 0 : gamma * lambda * trace);
          advantages[row] = trace;
          returns[row] = now.values[row] + trace;
        }
      }
    }
    for (std::size_t row = 0; row < segment.actions.size(); ++row) {
      states_.append(segment.states, row);
    }
    actions_.insert(actions_.end(), segment.actions.begin(), segment.actions.end());
    old_.insert(old_.end(), segment.log_probabilities.begin(), segment.log_probabilities.end());
    returns_.insert(returns_.end(), returns.begin(), returns.end());
    advantages_.insert(advantages_.end(), advantages.begin(), advantages.end());
  }

  void normalise() {
    double sum = 0;
    double squares = 0;
    for (const float a : advantages_) {
      sum += static_cast<double>(a);
      squares += static_cast<double>(a) * static_cast<double>(a);
    }
    const auto count = static_cast<double>(advantages_.size());
    const double mean = sum / count;
    const double deviation = std::sqrt(std::max(1e-8, squares / count - mean * mean));
    for (float& a : advantages_) {
      a = static_cast<float>((static_cast<double>(a) - mean) / deviation);
    }
  }

  void update(std::span<const std::size_t> rows, const Elites& elites, double progress, Rng& rng,
              LearnStats& stats) {
    const StateBatch batch = batch_of(states_, rows);
    const TorchPolicy::Output output = policy_.forward(batch);
    const at::Tensor logs = TorchPolicy::log_probabilities(output, batch);
    const at::Tensor taken =
        logs.gather(1, chosen_of(actions_, rows, at::kLong).unsqueeze(1)).squeeze(1);
    const at::Tensor advantages = chosen_of(advantages_, rows, at::kFloat);
    at::Tensor gain;
    if (is_clipped_) {
      const at::Tensor ratio = (taken - chosen_of(old_, rows, at::kFloat)).exp();
      gain = at::minimum(ratio * advantages, ratio.clamp(1 - kClip, 1 + kClip) * advantages);
    } else {
      gain = taken * advantages;
    }
    const at::Tensor value_loss =
        (output.value - chosen_of(returns_, rows, at::kFloat)).square().mean();
    const at::Tensor entropy = -(logs.exp() * logs.clamp_min(-30)).sum(1).mean();
    const double warmth = options_.entropy * (1 - progress) + options_.final_entropy * progress;
    at::Tensor loss = kValueShare * value_loss - gain.mean() - warmth * entropy;
    if (options_.imitation > 0) {
      loss = loss + options_.imitation * imitation_loss(rows.size() / 4 + 1, elites, rng);
    }
    policy_.gradients().zero_();
    loss.backward();
    adam_.step(policy_.parameters(), policy_.gradients(),
               options_.rate * std::max(0.05, 1 - progress));
    stats.loss += loss.item<double>();
    stats.value_loss += value_loss.item<double>();
    stats.entropy += entropy.item<double>();
  }

  at::Tensor imitation_loss(std::size_t count, const Elites& elites, Rng& rng) const {
    StateRows states;
    std::vector<std::uint32_t> actions;
    elites.sample(count, rng, states, actions);
    if (actions.empty()) {
      return at::zeros({}, at::kFloat);
    }
    const std::vector<std::size_t> rows = numbers(actions.size());
    const StateBatch batch = batch_of(states, rows);
    const at::Tensor logs = TorchPolicy::log_probabilities(policy_.forward(batch), batch);
    return -logs.gather(1, chosen_of(actions, rows, at::kLong).unsqueeze(1)).mean();
  }

  TorchPolicy& policy_;
  const TrainPolicyOptions& options_;
  FlatAdam adam_;
  bool is_clipped_ = false;
  bool has_trace_ = false;
  std::uint32_t passes_ = 1;
  StateRows states_;
  std::vector<std::uint32_t> actions_;
  std::vector<float> old_;
  std::vector<float> returns_;
  std::vector<float> advantages_;
};

}  // namespace

std::unique_ptr<Learner> make_on_policy_learner(TorchPolicy& policy,
                                                const TrainPolicyOptions& options) {
  return std::make_unique<OnPolicyLearner>(policy, options);
}

}  // namespace foretune::policy_training
