#include "foretune/base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/fork.h"

namespace foretune {
namespace {

constexpr std::size_t kCacheLine = 64;

}  // namespace

// The pool runs one loop at a time: `round` counts the loops, `pending` counts the threads that
// still work on the current one. Workers spin on `round` for a while, because loops often follow
// each other within microseconds.
//
// An operating system often wakes a worker on the core of the thread that woke it. Since both yield
// to each other while they wait, it may leave them there for many milliseconds, at half the speed.
// So a worker that finds itself on the core of another thread of the pool moves to a core without
// one, and stays off the others' cores from then on.
struct ThreadPool::State {
  // Each has a cache line of its own, because different threads write them.
  alignas(kCacheLine) std::atomic<std::uint32_t> round{0};
  alignas(kCacheLine) std::atomic<std::size_t> pending{0};
  std::atomic<bool> stopping{false};
  std::size_t count = 0;
  const std::function<void(std::size_t)>* body = nullptr;
  std::size_t asked = 1;
  std::size_t threads = 1;  // that there are
  std::uint32_t generation = fork_generation();
  // The cores that the pool's creator could use, and where each thread ran last.
  cpu_set_t usable{};
  std::unique_ptr<std::atomic<int>[]> cores;  // NOLINT(*-avoid-c-arrays)
  std::vector<std::jthread> workers;

  explicit State(std::size_t size)
      : asked(size), threads(size), cores(std::make_unique<std::atomic<int>[]>(size)) {  // NOLINT
    CPU_ZERO(&usable);
    if (::sched_getaffinity(0, sizeof usable, &usable) != 0) {
      CPU_ZERO(&usable);  // no worker moves
    }
    for (std::size_t thread = 0; thread < threads; ++thread) {
      cores[thread].store(-1, std::memory_order_relaxed);
    }
    workers.reserve(threads - 1);
    try {
      for (std::size_t thread = 1; thread < size; ++thread) {
        workers.emplace_back([this, thread] { loop(thread); });
      }
    } catch (const std::system_error&) {
      threads = workers.size() + 1;
    }
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    stopping.store(true, std::memory_order_release);
    announce();
  }

  // Writes the core only when it changes, because the threads share the cache line.
  int note_core(std::size_t thread) {
    const int core = ::sched_getcpu();
    if (cores[thread].load(std::memory_order_relaxed) != core) {
      cores[thread].store(core, std::memory_order_relaxed);
    }
    return core;
  }

  void leave_shared_core(std::size_t thread) {
    const int own = note_core(thread);
    bool is_shared = false;
    for (std::size_t other = 0; other < thread; ++other) {
      is_shared = is_shared || cores[other].load(std::memory_order_relaxed) == own;
    }
    if (!is_shared) {
      return;
    }
    cpu_set_t free = usable;
    for (std::size_t other = 0; other < threads; ++other) {
      const int core = cores[other].load(std::memory_order_relaxed);
      if (core >= 0 && core < CPU_SETSIZE) {
        CPU_CLR(static_cast<unsigned>(core), &free);
      }
    }
    if (CPU_COUNT(&free) > 0 && ::sched_setaffinity(0, sizeof free, &free) == 0) {
      note_core(thread);
    }
  }

  void work(std::size_t thread) {
    for (std::size_t index = thread; index < count; index += threads) {
      (*body)(index);
    }
  }

  std::uint32_t wait_for_round(std::uint32_t seen) {
    constexpr int kSpins = 4000;
    for (int spin = 0; spin < kSpins; ++spin) {
      const std::uint32_t now = round.load(std::memory_order_acquire);
      if (now != seen) {
        return now;
      }
      if (spin % 64 == 63) {
        std::this_thread::yield();
      }
    }
    round.wait(seen, std::memory_order_acquire);
    return round.load(std::memory_order_acquire);
  }

  void loop(std::size_t thread) {
    std::uint32_t seen = 0;
    while (true) {
      seen = wait_for_round(seen);
      if (stopping.load(std::memory_order_acquire)) {
        return;
      }
      leave_shared_core(thread);
      work(thread);
      pending.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void announce() {
    round.fetch_add(1, std::memory_order_acq_rel);
    round.notify_all();
  }
};

ThreadPool::ThreadPool(std::size_t threads) {
  FORETUNE_CHECK(threads >= 1);
  state_ = std::make_unique<State>(threads);
}

ThreadPool::~ThreadPool() { leave_to_parent(); }

// Abandons a state that the parent's threads were using; it cannot be freed safely in a child.
bool ThreadPool::leave_to_parent() {
  if (state_->generation == fork_generation()) {
    return false;
  }
  [[maybe_unused]] State* const left = state_.release();
  return true;
}

std::size_t ThreadPool::threads() const { return state_->asked; }

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (const std::size_t asked = state_->asked; asked > 1 && leave_to_parent()) {
    state_ = std::make_unique<State>(asked);
  }
  State& state = *state_;
  state.count = count;
  state.body = &body;
  if (state.threads == 1 || count <= 1) {
    for (std::size_t index = 0; index < count; ++index) {
      body(index);
    }
    return;
  }
  state.note_core(0);
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
