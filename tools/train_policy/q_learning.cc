// Double, dueling DQN with returns over several steps and prioritised replay. An action is worth
// the value of its state plus its score minus the mean score of the legal actions.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "foretune/base/rng.h"
#include "foretune/loop/loop_actions.h"
#include "learner.h"

namespace foretune::policy_training {
namespace {

// Schaul et al. 2016.
constexpr double kPriorityPower = 0.6;
constexpr double kLeastPriority = 1e-3;
constexpr double kFirstCorrection = 0.4;
// Updates between copies of the parameters into the target network.
constexpr std::int64_t kTargetAge = 200;

// Sums over a binary tree: a leaf is drawn with a probability in proportion to its weight.
class SumTree {
 public:
  explicit SumTree(std::size_t leaves) {
    while (first_ < leaves) {
      first_ *= 2;
    }
    sums_.resize(2 * first_);
  }
  void set(std::size_t leaf, double weight) {
    std::size_t node = first_ + leaf;
    sums_[node] = weight;
    for (node /= 2; node > 0; node /= 2) {
      sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
    }
  }
  [[nodiscard]] double total() const { return sums_[1]; }
  [[nodiscard]] double weight(std::size_t leaf) const { return sums_[first_ + leaf]; }
  [[nodiscard]] std::size_t find(double sum) const {
    std::size_t node = 1;
    while (node < first_) {
      node *= 2;
      if (sum >= sums_[node] && sums_[node + 1] > 0) {
        sum -= sums_[node];
        ++node;
      }
    }
    return node - first_;
  }

 private:
  std::size_t first_ = 1;
  std::vector<double> sums_;
};

class Replay {
 public:
  explicit Replay(std::size_t capacity) : capacity_(capacity), tree_(capacity) {}

  void add(const StateRows& states, std::size_t from, std::uint32_t action, float reward,
           const StateRows& after, std::size_t to, float discount) {
    const std::size_t place = next_;
    if (size_ < capacity_) {
      ++size_;
      before_.resize(size_);
      after_.resize(size_);
      actions_.resize(size_);
      rewards_.resize(size_);
      discounts_.resize(size_);
    }
    next_ = (next_ + 1) % capacity_;
    before_.assign(place, states, from);
    after_.assign(place, after, to);
    actions_[place] = action;
    rewards_[place] = reward;
    discounts_[place] = discount;
    tree_.set(place, highest_);
  }
  void set_priority(std::size_t place, double error) {
    const double weight = std::pow(std::abs(error) + kLeastPriority, kPriorityPower);
    highest_ = std::max(highest_, weight);
    tree_.set(place, weight);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t draw(Rng& rng) const {
    return std::min(size_ - 1, tree_.find(rng.uniform() * tree_.total()));
  }
  [[nodiscard]] double probability(std::size_t place) const {
    return tree_.weight(place) / tree_.total();
  }
  [[nodiscard]] const StateRows& before() const { return before_; }
  [[nodiscard]] const StateRows& after() const { return after_; }
  [[nodiscard]] std::uint32_t action(std::size_t place) const { return actions_[place]; }
  [[nodiscard]] float reward(std::size_t place) const { return rewards_[place]; }
  // 0 where the episode ended.
  [[nodiscard]] float discount(std::size_t place) const { return discounts_[place]; }

 private:
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::size_t next_ = 0;
  double highest_ = 1;
  SumTree tree_;
  StateRows before_;
  StateRows after_;
  std::vector<std::uint32_t> actions_;
  std::vector<float> rewards_;
  std::vector<float> discounts_;
};

// The value of every action; those of illegal ones are far below.
at::Tensor action_values(const TorchPolicy::Output& output, const StateBatch& batch) {
  const at::Tensor legal = batch.masks.to(at::kFloat);
  const at::Tensor mean = (output.actions * legal).sum(1, true) / legal.sum(1, true);
  return (output.value.unsqueeze(1) + output.actions - mean)
      .masked_fill(batch.masks.logical_not(), -1e9);
}

template <class T>
at::Tensor tensor_of(std::vector<T> values, at::ScalarType type) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, type).clone();
}

class QLearner final : public Learner {
 public:
  QLearner(TorchPolicy& policy, const TrainPolicyOptions& options)
      : policy_(policy),
        target_(options.width, options.seed),
        options_(options),
        adam_(policy.parameters()),
        replay_(options.replay) {
    target_.import(policy.exported());
  }

  LearnStats learn(const std::vector<Segment>& segments, const Elites& /*elites*/, double progress,
                   std::uint64_t seed) override {
    std::size_t added = 0;
    for (const Segment& segment : segments) {
      added += add(segment);
    }
    Rng rng(seed);
    LearnStats stats;
    if (replay_.size() < 2 * std::size_t{options_.batch}) {
      return stats;
    }
    const auto updates =
        std::max<std::size_t>(1, options_.replays * added / std::size_t{options_.batch});
    for (std::size_t i = 0; i < updates; ++i) {
      update(progress, rng, stats);
    }
    stats.loss /= static_cast<double>(updates);
    stats.value_loss = stats.loss;
    return stats;
  }
  FlatAdam& optimizer() override { return adam_; }

 private:
  // Returns over up to `n_step` steps, shorter at the end of an episode and of the segment.
  std::size_t add(const Segment& segment) {
    const std::size_t columns = segment.episodes;
    for (std::size_t t = 0; t < segment.steps; ++t) {
      for (std::size_t e = 0; e < columns; ++e) {
        float sum = 0;
        double discount = 1;
        bool is_over = false;
        std::size_t step = t;
        for (; step < segment.steps && step < t + options_.n_step && !is_over; ++step) {
          const std::size_t row = step * columns + e;
          sum += static_cast<float>(discount) * segment.rewards[row];
          discount *= options_.gamma;
          is_over = segment.ends[row] != 0;
        }
        const std::size_t row = t * columns + e;
        replay_.add(segment.states, row, segment.actions[row], sum, segment.states,
                    step * columns + e, is_over ? 0 : static_cast<float>(discount));
      }
    }
    return segment.steps * columns;
  }

  void update(double progress, Rng& rng, LearnStats& stats) {
    std::vector<std::size_t> places;
    std::vector<std::int64_t> actions;
    std::vector<float> rewards;
    std::vector<float> discounts;
    std::vector<float> weights;
    const double correction = kFirstCorrection + (1 - kFirstCorrection) * progress;
    for (std::uint32_t i = 0; i < options_.batch; ++i) {
      const std::size_t place = replay_.draw(rng);
      places.push_back(place);
      actions.push_back(replay_.action(place));
      rewards.push_back(replay_.reward(place));
      discounts.push_back(replay_.discount(place));
      weights.push_back(static_cast<float>(
          std::pow(replay_.probability(place) * static_cast<double>(replay_.size()), -correction)));
    }
    const float heaviest = *std::max_element(weights.begin(), weights.end());
    for (float& weight : weights) {
      weight /= heaviest;
    }
    at::Tensor goal;
    {
      const at::NoGradGuard no_grad;
      const StateBatch after = batch_of(replay_.after(), places);
      const at::Tensor best = action_values(policy_.forward(after), after).argmax(1, true);
      const at::Tensor worth =
          action_values(target_.forward(after), after).gather(1, best).squeeze(1);
      goal = tensor_of(rewards, at::kFloat) + tensor_of(discounts, at::kFloat) * worth;
    }
    const StateBatch before = batch_of(replay_.before(), places);
    const at::Tensor values = action_values(policy_.forward(before), before)
                                  .gather(1, tensor_of(actions, at::kLong).unsqueeze(1))
                                  .squeeze(1);
    const at::Tensor error = values - goal;
    const at::Tensor loss =
        (at::smooth_l1_loss(values, goal, at::Reduction::None) * tensor_of(weights, at::kFloat))
            .mean();
    policy_.gradients().zero_();
    loss.backward();
    adam_.step(policy_.parameters(), policy_.gradients(),
               options_.rate * std::max(0.05, 1 - progress));
    const at::Tensor errors = error.detach().contiguous();
    for (std::size_t i = 0; i < places.size(); ++i) {
      replay_.set_priority(places[i], static_cast<double>(errors.data_ptr<float>()[i]));
    }
    if (++updates_ % kTargetAge == 0) {
      target_.import(policy_.exported());
    }
    stats.loss += loss.item<double>();
  }

  TorchPolicy& policy_;
  TorchPolicy target_;
  const TrainPolicyOptions& options_;
  FlatAdam adam_;
  Replay replay_;
  std::int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Learner> make_q_learner(TorchPolicy& policy, const TrainPolicyOptions& options) {
  return std::make_unique<QLearner>(policy, options);
}

}  // namespace foretune::policy_training
