// Work for which no caller waits: one thread does it, in order. The thread starts with the first
// job.
//
// Thread safety: all members, any thread; not from a job. A forked child has no such thread: its
// jobs are never done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "foretune/base/fork.h"

namespace foretune::dispatch_internal {

class BackgroundJobs {
 public:
  // Gets true after stop(): it has only to say that it will not be done. Must not throw.
  using Job = std::function<void(bool is_cancelled)>;

  BackgroundJobs() = default;
  ~BackgroundJobs() { stop(); }
  BackgroundJobs(const BackgroundJobs&) = delete;
  BackgroundJobs& operator=(const BackgroundJobs&) = delete;

  void add(Job job) {
    if (is_child()) {
      return;
    }
    std::unique_lock lock(mutex_);
    if (is_stopped_) {
      lock.unlock();
      job(true);
      return;
    }
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
    }
    wake_.notify_one();
  }

  // Waits for the job that is being done and cancels the others.
  void stop() {
    if (is_child()) {
      if (thread_.joinable()) {
        thread_.detach();  // it lives in the parent
      }
      return;
    }
    std::thread mine;
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      mine = std::move(thread_);
      wake_.notify_one();
    }
    if (mine.joinable()) {
      mine.join();
    }
  }

 private:
  [[nodiscard]] bool is_child() const { return made_in_ != fork_generation(); }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
      if (jobs_.empty()) {
        return;
      }
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      const bool is_cancelled = is_stopped_;
      lock.unlock();
      job(is_cancelled);
      job = nullptr;
      lock.lock();
    }
  }

  std::uint32_t made_in_ = fork_generation();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::thread thread_;
  bool is_stopped_ = false;
};

}  // namespace foretune::dispatch_internal
