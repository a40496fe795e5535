// A fixed set of threads that run one indexed loop at a time; passed in where work may be shared.
// Thread safety: run() may be called by one thread at a time. In a forked child, where none of the
// threads lives on, the first run() makes new ones; a loop that another thread was running at the
// fork is not finished there. Cost: waking the threads takes a few microseconds; workers spin
// briefly before they sleep, so back-to-back loops are cheap. A worker that wakes on the core of
// another thread of the pool moves, within the cores that the creating thread may use.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace foretune {

class ThreadPool {
 public:
  // `threads` includes the calling one: 1 makes no thread at all. When the system refuses further
  // threads, the existing ones do the work.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t threads() const;
  // Calls body(index) for index in [0, count) with index spread over the threads: thread t gets
  // t, t + threads, ... Returns when all are done. `body` must not throw.
  void run(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  bool leave_to_parent();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
