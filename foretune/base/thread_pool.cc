#include "foretune/base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "foretune/base/check.h"

namespace foretune {

// One loop at a time: `round` says which, `pending` how many threads still work on it. Workers spin
// on `round` for a while, because loops often follow each other within microseconds.
struct ThreadPool::State {
  std::atomic<std::uint64_t> round{0};
  std::atomic<std::size_t> pending{0};
  std::atomic<bool> stopping{false};
  std::size_t count = 0;
  const std::function<void(std::size_t)>* body = nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  std::size_t threads = 1;
  std::vector<std::jthread> workers;

  void work(std::size_t thread) {
    for (std::size_t index = thread; index < count; index += threads) {
      (*body)(index);
    }
  }

  std::uint64_t wait_for_round(std::uint64_t seen) {
    constexpr int kSpins = 4000;
    for (int spin = 0; spin < kSpins; ++spin) {
      const std::uint64_t now = round.load(std::memory_order_acquire);
      if (now != seen) {
        return now;
      }
      if (spin % 64 == 63) {
        std::this_thread::yield();
      }
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return round.load(std::memory_order_acquire) != seen; });
    return round.load(std::memory_order_acquire);
  }

  void loop(std::size_t thread) {
    std::uint64_t seen = 0;
    while (true) {
      seen = wait_for_round(seen);
      if (stopping.load(std::memory_order_acquire)) {
        return;
      }
      work(thread);
      pending.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void announce() {
    {
      // Under the lock, so that no worker misses it between its test and its sleep.
      const std::scoped_lock lock(mutex);
      round.fetch_add(1, std::memory_order_acq_rel);
    }
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  FORETUNE_CHECK(threads >= 1);
  state_->threads = threads;
  for (std::size_t thread = 1; thread < threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->loop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true, std::memory_order_release);
  state_->announce();
}

std::size_t ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t)>& body) {
  State& state = *state_;
  state.count = count;
  state.body = &body;
  if (state.threads == 1 || count <= 1) {
    for (std::size_t index = 0; index < count; ++index) {
      body(index);
    }
    return;
  }
  state.pending.store(state.threads - 1, std::memory_order_release);
  state.announce();
  state.work(0);
  int spins = 0;
  while (state.pending.load(std::memory_order_acquire) != 0) {
    if (++spins % 64 == 0) {
      std::this_thread::yield();
    }
  }
}

}  // namespace foretune
