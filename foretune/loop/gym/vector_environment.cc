#include "foretune/loop/gym/vector_environment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune::loop::gym {
namespace {

// A refused nest counts as one that is e times slower than the start: bad, but no worse than what
// an agent has to pass on the way to a pack and lanes along it.
constexpr double kRefusal = 1;

}  // namespace

Result<RewardKind> parse_reward_kind(std::string_view name) {
  if (name == "share") {
    return RewardKind::kShare;
  }
  if (name == "log") {
    return RewardKind::kLog;
  }
  if (name == "best") {
    return RewardKind::kBest;
  }
  return fail(ErrorCode::kInvalidArgument, "a reward is share, log or best, not ",
              quoted(name, 40));
}

VectorEnvironment::VectorEnvironment(std::vector<NestTask*> tasks, const VectorOptions& options,
                                     std::uint64_t seed)
    : pool_(std::move(tasks)),
      options_(options),
      rng_(seed),
      states_(options.episodes),
      starts_(options.episodes),
      task_of_(options.episodes),
      stepped_task_(options.episodes),
      loops_(options.episodes * kLoopFloats),
      whole_(options.episodes * PolicyObserver::kWholeColumns),
      masks_(options.episodes * LoopActions::kCount),
      counts_(options.episodes),
      rewards_(options.episodes),
      ends_(options.episodes),
      shares_(options.episodes) {
  FORETUNE_CHECK(!pool_.empty() && options.episodes > 0 && options.max_steps > 0);
  for (std::size_t episode = 0; episode < options.episodes; ++episode) {
    begin(episode);
  }
}

void VectorEnvironment::begin(std::size_t episode) {
  const std::size_t chosen = rng_.below(pool_.size());
  task_of_[episode] = static_cast<std::uint32_t>(chosen);
  NestTask& task = *pool_[chosen];
  State& state = states_[episode];
  const NestTask::Step start = task.start();
  state = {.nest = start.to};
  // A plain nest that is refused leaves nothing to compare with but the scale itself.
  constexpr double kNoStart = -4;
  starts_[episode] = start.log_share.value_or(kNoStart);
  state.log_share = starts_[episode];
  state.best = state.log_share;
  observe(episode);
}

void VectorEnvironment::observe(std::size_t episode) {
  const State& state = states_[episode];
  const double left =
      1 - static_cast<double>(state.steps) / static_cast<double>(options_.max_steps);
  const auto loops = std::span(loops_).subspan(episode * kLoopFloats, kLoopFloats);
  const auto mask = std::span(masks_).subspan(episode * LoopActions::kCount, LoopActions::kCount);
  const std::size_t count = pool_[task_of_[episode]]->observe(
      state.nest, left, loops,
      std::span(whole_).subspan(episode * PolicyObserver::kWholeColumns,
                                PolicyObserver::kWholeColumns),
      mask);
  // Rows of the nest before that this one has not.
  for (std::size_t level = count; level < counts_[episode]; ++level) {
    std::fill_n(loops.begin() + static_cast<std::ptrdiff_t>(level * PolicyObserver::kLoopColumns),
                PolicyObserver::kLoopColumns, 0.0F);
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(level * LoopActions::kOperations),
                LoopActions::kOperations, std::uint8_t{0});
  }
  counts_[episode] = static_cast<std::uint8_t>(count);
}

double VectorEnvironment::reward_of(const State& before, const State& after) const {
  switch (options_.reward) {
    case RewardKind::kShare:
      return std::exp(after.log_share) - std::exp(before.log_share);
    case RewardKind::kLog:
      return after.log_share - before.log_share;
    case RewardKind::kBest:
      return after.best - before.best;
  }
  return 0;
}

Status VectorEnvironment::step(std::span<const std::uint32_t> actions) {
  FORETUNE_CHECK(actions.size() == episodes());
  for (std::size_t e = 0; e < episodes(); ++e) {
    if (actions[e] >= LoopActions::kCount || masks_[e * LoopActions::kCount + actions[e]] == 0) {
      return fail(ErrorCode::kInvalidArgument, "action ", actions[e], " of episode ", e,
                  " is not legal");
    }
  }
  stepped_task_ = task_of_;
  for (std::size_t e = 0; e < episodes(); ++e) {
    NestTask& task = *pool_[task_of_[e]];
    const State before = states_[e];
    State& state = states_[e];
    ++state.steps;
    double price = 0;
    if (actions[e] != LoopActions::kStop) {
      FORETUNE_TRY(const NestTask::Step taken, task.step(before.nest, actions[e]));
      state.nest = taken.to;
      state.log_share = taken.log_share.value_or(starts_[e] - kRefusal);
      price = taken.is_new ? options_.price : 0;
      state.best = std::max(state.best, state.log_share);
    }
    rewards_[e] = static_cast<float>(reward_of(before, state) - price);
    shares_[e] = static_cast<float>(state.log_share);
    const bool is_over = actions[e] == LoopActions::kStop || state.steps >= options_.max_steps;
    ends_[e] = is_over ? 1 : 0;
    if (is_over) {
      begin(e);
    } else {
      observe(e);
    }
  }
  return {};
}

}  // namespace foretune::loop::gym
