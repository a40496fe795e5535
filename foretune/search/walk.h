// Strategies over spaces that are built step by step, written as one function each: a coroutine
// that waits for the values of states and is never told how they are measured.
//
//   Walk greedy(WalkContext& context) {
//     WalkNode here = context.start();
//     co_await context.measure({here.state});
//     ... context.value(here.state) ...
//   }
//
// States that mean the same (Space::canonical) are one measurement, and none is asked for twice.
// Thread safety: one thread.
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/search/strategy.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune {

// The coroutine's handle. It runs when it is resumed, until it waits or ends.
class Walk {
 public:
  // The name is the language's.
  struct promise_type {  // NOLINT(readability-identifier-naming)
    Walk get_return_object() {
      return Walk(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    // Nothing here throws but for want of memory.
    [[noreturn]] void unhandled_exception() { std::terminate(); }
  };

  Walk(Walk&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Walk& operator=(Walk&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  ~Walk() {
    if (handle_) {
      handle_.destroy();
    }
  }

  [[nodiscard]] bool is_done() const { return !handle_ || handle_.done(); }
  void resume() { handle_.resume(); }

 private:
  explicit Walk(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// A state and how many actions led to it.
struct WalkNode {
  Config state;
  std::size_t steps = 0;
};

class WalkContext {
 public:
  WalkContext(const Space& space, const SequentialSpace& steps, std::size_t max_steps)
      : space_(space), steps_(steps), max_steps_(max_steps) {}

  [[nodiscard]] WalkNode start() const { return {steps_.start(), 0}; }
  [[nodiscard]] const SequentialSpace& sequential() const { return steps_; }
  [[nodiscard]] std::size_t max_steps() const { return max_steps_; }
  [[nodiscard]] Rng& rng() { return *rng_; }
  // How many configs have been asked for so far.
  [[nodiscard]] std::size_t measured() const { return known_.size(); }

  // Waits until all of them have values; of those that have, it does not wait.
  struct Awaitable {
    bool is_ready;
    [[nodiscard]] bool await_ready() const noexcept { return is_ready; }
    void await_suspend(std::coroutine_handle<> /*handle*/) const noexcept {}
    void await_resume() const noexcept {}
  };
  Awaitable measure(const std::vector<Config>& states);
  // To be minimised; infinite for what failed, was stopped early, or is not known.
  [[nodiscard]] double value(const Config& state) const;
  [[nodiscard]] bool is_known(const Config& state) const;
  [[nodiscard]] Config canonical(const Config& state) const { return space_.canonical(state); }

  // The states that one legal action leads to.
  [[nodiscard]] std::vector<WalkNode> children(const WalkNode& node) const;
  // The states that differ in meaning from `node` by at least one and at most `changes` changes,
  // each in the fewest steps; actions that change no meaning (moves of a cursor) are taken in
  // between as far as steps are left. Sorted by steps.
  [[nodiscard]] std::vector<WalkNode> changed(const WalkNode& node, std::size_t changes) const;
  // A uniformly random legal action; nothing at the end of the way.
  std::optional<std::size_t> random_action(const WalkNode& node);
  std::optional<WalkNode> random_child(const WalkNode& node);
  // At least one and at most `max_steps` random actions from the start.
  WalkNode random_walk();

 private:
  friend class WalkStrategy;
  const Space& space_;
  const SequentialSpace& steps_;
  std::size_t max_steps_;
  Rng* rng_ = nullptr;  // of the ask() that runs the walk
  std::unordered_map<Config, std::optional<double>> known_;
  std::deque<Config> wanted_;
};

std::vector<Config> states_of(std::span<const WalkNode> nodes);

// Every ask() has to be followed by a tell() of what it gave before the next one gives more.
class WalkStrategy final : public Strategy {
 public:
  using Function = Walk (*)(WalkContext& context, StrategyOptions options);
  // `space` is sequential.
  WalkStrategy(const Space& space, const StrategyOptions& options, Function function);
  std::vector<Config> ask(std::size_t count, Rng& rng) override;
  void tell(std::span<const Trial> finished) override;

 private:
  WalkContext context_;
  Walk walk_;
  std::size_t limit_;  // 0: none
  std::size_t asked_ = 0;
  std::size_t outstanding_ = 0;
};

// In files of their own.
Walk walk_evolution(WalkContext& context, StrategyOptions options);
Walk walk_annealing(WalkContext& context, StrategyOptions options);
Walk walk_guided(WalkContext& context, StrategyOptions options);

}  // namespace foretune
