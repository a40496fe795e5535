#include "foretune/base/fork.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace foretune {

// All participants of the process, in a list of their own links.
class ForkParticipants {
 public:
  static ForkParticipants& of_process() {
    // Never destroyed: threads may still work while the process exits.
    static ForkParticipants& all = *new ForkParticipants();
    return all;
  }

  [[nodiscard]] std::uint32_t generation() const {
    return generation_.load(std::memory_order_relaxed);
  }

  void add(ForkParticipant& added) {
    const std::lock_guard lock(mutex_);
    added.after_ = first_;
    if (first_ != nullptr) {
      first_->before_ = &added;
    }
    first_ = &added;
  }

  void remove(ForkParticipant& removed) {
    const std::lock_guard lock(mutex_);
    (removed.before_ == nullptr ? first_ : removed.before_->after_) = removed.after_;
    if (removed.after_ != nullptr) {
      removed.after_->before_ = removed.before_;
    }
  }

 private:
  ForkParticipants() {
    ::pthread_atfork([] { of_process().hold(); }, [] { of_process().release(); },
                     [] { of_process().renew(); });
  }

  // Returns with the list's lock and all participants held.
  void hold() {
    constexpr int kQuickAttempts = 100;
    constexpr std::chrono::microseconds kPause(50);
    for (int attempt = 0; !hold_now(); ++attempt) {
      if (attempt < kQuickAttempts) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  bool hold_now() {
    mutex_.lock();
    for (ForkParticipant* each = first_; each != nullptr; each = each->after_) {
      if (!each->hold_for_fork()) {
        release_until(each);
        return false;
      }
    }
    return true;
  }

  void release_until(const ForkParticipant* end) {
    for (ForkParticipant* each = first_; each != end; each = each->after_) {
      each->release_in_parent();
    }
    mutex_.unlock();
  }

  void release() { release_until(nullptr); }

  void renew() {
    generation_.fetch_add(1, std::memory_order_relaxed);
    for (ForkParticipant* each = first_; each != nullptr; each = each->after_) {
      each->renew_in_child();
    }
    std::construct_at(&mutex_);
  }

  std::atomic<std::uint32_t> generation_{0};
  std::mutex mutex_;  // of the list
  ForkParticipant* first_ = nullptr;
};

std::uint32_t fork_generation() noexcept { return ForkParticipants::of_process().generation(); }

void ForkParticipant::join_forks() { ForkParticipants::of_process().add(*this); }
void ForkParticipant::leave_forks() noexcept { ForkParticipants::of_process().remove(*this); }

}  // namespace foretune
