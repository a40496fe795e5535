#include "foretune/model/train/internal/side_by_side.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace foretune::train_internal {
namespace {

using Task = std::function<Status(std::size_t, const ProgressHook&)>;

Status run_in_turn(std::size_t count, const ProgressHook& progress, const Task& task) {
  for (std::size_t i = 0; i < count; ++i) {
    FORETUNE_TRY_STATUS(task(i, progress));
  }
  return {};
}

// Workers take tasks and leave their reports; the caller passes the reports on.
class SideBySide {
 public:
  SideBySide(std::size_t count, const ProgressHook& progress, const Task& task)
      : statuses_(count), progress_(progress), task_(task) {}

  Status run(std::size_t threads) {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) {
      try {
        workers.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // the system has no more threads; those that there are do the work
      }
    }
    if (workers.empty()) {
      return run_in_turn(statuses_.size(), progress_, task_);
    }
    pass_reports_on(workers.size());
    workers.clear();
    for (Status& status : statuses_) {
      FORETUNE_TRY_STATUS(std::move(status));
    }
    return {};
  }

 private:
  void work() {
    const ProgressHook hook =
        progress_ ? ProgressHook([this](const TrainProgress& report) { return leave(report); })
                  : nullptr;
    std::unique_lock lock(mutex_);
    while (next_ < statuses_.size() && !has_failed_) {
      const std::size_t mine = next_++;
      lock.unlock();
      Status status = task_(mine, hook);
      lock.lock();
      has_failed_ = has_failed_ || !status;
      statuses_[mine] = std::move(status);
    }
    ++finished_;
    changed_.notify_one();
  }

  bool leave(const TrainProgress& report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(report);
    changed_.notify_one();
    return !is_stopped_;
  }

  void pass_reports_on(std::size_t workers) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !reports_.empty() || finished_ == workers; });
      if (reports_.empty()) {
        return;
      }
      const TrainProgress report = std::move(reports_.front());
      reports_.pop_front();
      if (is_stopped_) {
        continue;
      }
      lock.unlock();
      const bool goes_on = progress_(report);
      lock.lock();
      is_stopped_ = !goes_on;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TrainProgress> reports_;
  std::vector<Status> statuses_;
  std::size_t next_ = 0;
  std::size_t finished_ = 0;
  bool has_failed_ = false;
  bool is_stopped_ = false;
  const ProgressHook& progress_;
  const Task& task_;
};

}  // namespace

Status run_side_by_side(std::size_t count, std::uint32_t threads, const ProgressHook& progress,
                        const Task& task) {
  if (threads <= 1 || count <= 1) {
    return run_in_turn(count, progress, task);
  }
  return SideBySide(count, progress, task).run(std::min<std::size_t>(count, threads));
}

}  // namespace foretune::train_internal
