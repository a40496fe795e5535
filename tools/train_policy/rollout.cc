#include "rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

namespace foretune::policy_training {
namespace {

using loop::LoopActions;
using loop::PolicyObserver;
using loop::gym::NestTask;
using loop::gym::VectorEnvironment;

// Times of equal nests differ by less.
constexpr double kClearGain = 0.005;

// Chooses the action of one episode.
class Chooser {
 public:
  explicit Chooser(Rng& rng) : rng_(rng) {}

  // By the probabilities; sets ln of the chosen one's.
  std::uint32_t draw(std::span<const float> scores, std::span<const std::uint8_t> mask,
                     float* log_probability) {
    float highest = -1e30F;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      highest = mask[i] != 0 ? std::max(highest, scores[i]) : highest;
    }
    weights_.assign(scores.size(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (mask[i] != 0) {
        weights_[i] = std::exp(static_cast<double>(scores[i] - highest));
        sum += weights_[i];
      }
    }
    double left = rng_.uniform() * sum;
    std::uint32_t chosen = LoopActions::kStop;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (mask[i] != 0) {
        chosen = static_cast<std::uint32_t>(i);
        left -= weights_[i];
        if (left <= 0) {
          break;
        }
      }
    }
    *log_probability = static_cast<float>(std::log(std::max(1e-30, weights_[chosen] / sum)));
    return chosen;
  }

  std::uint32_t best_or_random(std::span<const float> scores, std::span<const std::uint8_t> mask,
                               double epsilon) {
    const bool is_random = rng_.uniform() < epsilon;
    std::uint32_t best = LoopActions::kStop;
    std::uint64_t legal = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (mask[i] == 0) {
        continue;
      }
      ++legal;
      // Every legal action ends up chosen as often as any other.
      if (is_random ? rng_.below(legal) == 0 : scores[i] > scores[best]) {
        best = static_cast<std::uint32_t>(i);
      }
    }
    return best;
  }

 private:
  Rng& rng_;
  std::vector<double> weights_;
};

// The episodes that an environment is in, as elites keep them.
class Recorder {
 public:
  explicit Recorder(std::size_t episodes) : running_(episodes) {}

  void before(const VectorEnvironment& environment, std::size_t e, std::uint32_t action) {
    Elites::Episode& episode = running_[e].episode;
    append_state(environment, e, episode.states);
    episode.actions.push_back(action);
  }
  void after(const VectorEnvironment& environment, std::size_t e, Elites& elites) {
    Running& running = running_[e];
    const double share = static_cast<double>(environment.log_shares()[e]);
    const std::size_t steps = running.episode.actions.size();
    if (running.best_steps == 0 || share > running.episode.log_share + kClearGain) {
      running.episode.log_share = share;
      running.best_steps = steps;
    }
    if (environment.ends()[e] == 0) {
      return;
    }
    Elites::Episode& episode = running.episode;
    // Behind its best nest an episode should have stopped.
    if (running.best_steps < steps) {
      episode.actions.resize(running.best_steps + 1);
      episode.actions.back() = LoopActions::kStop;
      episode.states.resize(running.best_steps + 1);
    }
    elites.offer(environment.stepped_tasks()[e], std::move(episode));
    running = {};
  }

  static void append_state(const VectorEnvironment& environment, std::size_t e, StateRows& rows) {
    rows.append(environment.loops().subspan(e * VectorEnvironment::kLoopFloats,
                                            VectorEnvironment::kLoopFloats),
                environment.whole().subspan(e * PolicyObserver::kWholeColumns,
                                            PolicyObserver::kWholeColumns),
                environment.masks().subspan(e * LoopActions::kCount, LoopActions::kCount),
                environment.counts()[e]);
  }

 private:
  struct Running {
    Elites::Episode episode;
    std::size_t best_steps = 0;
  };
  std::vector<Running> running_;
};

}  // namespace

void Elites::offer(std::size_t task, Episode episode) {
  const std::lock_guard lock(mutex_);
  Episode& best = best_[task];
  const bool is_shorter = episode.actions.size() < best.actions.size() &&
                          episode.log_share > best.log_share - kClearGain;
  if (best.actions.empty() || episode.log_share > best.log_share + kClearGain || is_shorter) {
    best = std::move(episode);
  }
}

void Elites::sample(std::size_t count, Rng& rng, StateRows& states,
                    std::vector<std::uint32_t>& actions) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    const Episode& episode = best_[rng.below(best_.size())];
    if (!episode.actions.empty()) {
      const std::size_t step = rng.below(episode.actions.size());
      states.append(episode.states, step);
      actions.push_back(episode.actions[step]);
    }
  }
}

std::vector<Elites::Episode> Elites::all() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

void Elites::set(std::size_t task, Episode episode) {
  const std::lock_guard lock(mutex_);
  best_[task] = std::move(episode);
}

void Elites::fix_constants_of(PolicyNetwork& network) const {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  std::vector<InputRange> loops(PolicyObserver::kLoopColumns, {kFar, -kFar});
  std::vector<InputRange> whole(PolicyObserver::kWholeColumns, {kFar, -kFar});
  const auto widen = [](std::vector<InputRange>& ranges, const float* row) {
    for (InputRange& range : ranges) {
      range.low = std::min(range.low, *row);
      range.high = std::max(range.high, *row);
      ++row;
    }
  };
  const std::lock_guard lock(mutex_);
  bool has_any = false;
  for (const Episode& episode : best_) {
    const StateRows& states = episode.states;
    for (std::size_t row = 0; row < states.size(); ++row) {
      widen(whole, states.whole.data() + row * PolicyObserver::kWholeColumns);
      for (std::size_t level = 0; level < states.counts[row]; ++level) {
        widen(loops, states.loops.data() + row * PolicyObserver::kLoopFloats +
                         level * PolicyObserver::kLoopColumns);
      }
      has_any = true;
    }
  }
  if (has_any) {
    fix_constants(network, loops, whole);
  }
}

Result<Segment> play(const std::vector<NestTask*>& tasks, const PolicyNetwork& policy,
                     const ActorOptions& options, std::uint64_t seed, Elites* elites) {
  VectorEnvironment environment(tasks, options.environment, seed);
  Rng rng(seed ^ 0x5eedU);
  Chooser chooser(rng);
  PolicyEvaluator evaluator(policy);
  const std::size_t episodes = environment.episodes();
  Recorder recorder(episodes);
  Segment out{.episodes = episodes, .steps = options.steps};
  std::vector<float> scores(LoopActions::kCount);
  std::vector<std::uint32_t> chosen(episodes);
  const auto see = [&](std::size_t e) {
    Recorder::append_state(environment, e, out.states);
    const std::size_t row = out.states.size() - 1;
    out.values.push_back(evaluator.score(
        std::span(out.states.loops)
            .subspan(row * VectorEnvironment::kLoopFloats, VectorEnvironment::kLoopFloats),
        std::span(out.states.whole)
            .subspan(row * PolicyObserver::kWholeColumns, PolicyObserver::kWholeColumns),
        out.states.counts[row], scores));
    return environment.masks().subspan(e * LoopActions::kCount, LoopActions::kCount);
  };
  for (std::size_t t = 0; t < options.steps; ++t) {
    for (std::size_t e = 0; e < episodes; ++e) {
      const std::span<const std::uint8_t> mask = see(e);
      float log_probability = 0;
      chosen[e] =
          options.epsilon.empty()
              ? chooser.draw(scores, mask, &log_probability)
              : chooser.best_or_random(scores, mask, options.epsilon[e % options.epsilon.size()]);
      out.log_probabilities.push_back(log_probability);
      if (elites != nullptr) {
        recorder.before(environment, e, chosen[e]);
      }
    }
    FORETUNE_TRY_STATUS(environment.step(chosen));
    out.actions.insert(out.actions.end(), chosen.begin(), chosen.end());
    out.rewards.insert(out.rewards.end(), environment.rewards().begin(),
                       environment.rewards().end());
    out.ends.insert(out.ends.end(), environment.ends().begin(), environment.ends().end());
    for (std::size_t e = 0; e < episodes; ++e) {
      if (elites != nullptr) {
        recorder.after(environment, e, *elites);
      }
      if (environment.ends()[e] != 0) {
        out.finals.push_back(environment.log_shares()[e]);
      }
    }
  }
  for (std::size_t e = 0; e < episodes; ++e) {
    see(e);
  }
  return out;
}

Result<std::vector<Segment>> play_all(const std::vector<NestTask*>& tasks,
                                      const PolicyNetwork& policy, const ActorOptions& options,
                                      std::size_t actors, std::uint64_t seed, Elites* elites) {
  const Rng seeds(seed);
  std::vector<std::optional<Result<Segment>>> played(actors);
  std::vector<std::thread> threads;
  for (std::size_t actor = 0; actor < actors; ++actor) {
    const auto run = [&, actor] {
      played[actor] = play(tasks, policy, options, seeds.split(actor).next(), elites);
    };
    if (actor + 1 < actors) {
      threads.emplace_back(run);
    } else {
      run();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<Segment> out;
  for (std::optional<Result<Segment>>& segment : played) {
    FORETUNE_TRY(Segment one, *std::move(segment));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace foretune::policy_training
