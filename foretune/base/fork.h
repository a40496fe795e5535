// Locks and threads in a forked child, where only the thread lives on that called fork(): a lock
// that another one held would stay locked, and what it guards half changed.
//
//   ForkSafeMutex mutex;        // as std::mutex; a fork waits until nobody holds it
//   ForkSafeSharedMutex shared; // as std::shared_mutex; a fork waits for writers
//   ForkSafeTurn turn;          // as std::mutex, for what may take long: a fork does not wait
//
// In the child all are free. What a mutex guards is whole there; what a turn guards may not be, so
// it belongs to threads alone: a pool makes its own anew when fork_generation() has changed.
//
// A fork tries to take all locks of the process at once, and waits without any until it can, so the
// order in which other threads take them does not matter. A thread must not call fork() while it
// holds one. vfork(), posix_spawn() and clone() pass by, as they do by every pthread_atfork().
//
// Thread safety: as the standard library's. Cost: as the standard library's, and for each lock that
// exists a fork takes a quarter of a microsecond more.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace foretune {

// Raised in every child. What was made under another number belongs to a parent.
std::uint32_t fork_generation() noexcept;

// Something that a fork waits for, or that is to be renewed in the child.
class ForkParticipant {
 public:
  ForkParticipant(const ForkParticipant&) = delete;
  ForkParticipant& operator=(const ForkParticipant&) = delete;
  virtual ~ForkParticipant() = default;

 protected:
  ForkParticipant() = default;
  // The first and the last thing that happens to an object: at the end of its constructor, at the
  // beginning of its destructor.
  void join_forks();
  void leave_forks() noexcept;

 private:
  friend class ForkParticipants;
  // Whether the process may fork now. If so, nothing changes until one of the two below is called.
  virtual bool hold_for_fork() noexcept { return true; }
  virtual void release_in_parent() noexcept {}
  virtual void renew_in_child() noexcept = 0;

  ForkParticipant* before_ = nullptr;
  ForkParticipant* after_ = nullptr;
};

template <class Mutex, bool kIsWaitedFor>
class ForkSafe final : private ForkParticipant {
 public:
  ForkSafe() { join_forks(); }
  ~ForkSafe() override { leave_forks(); }

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  void lock_shared() { mutex_.lock_shared(); }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  static constexpr bool kIsShared = requires(Mutex& mutex) { mutex.lock_shared(); };

  // Readers change nothing, and there may always be some.
  bool hold_for_fork() noexcept override {
    if constexpr (!kIsWaitedFor) {
      return true;
    } else if constexpr (kIsShared) {
      return mutex_.try_lock_shared();
    } else {
      return mutex_.try_lock();
    }
  }
  void release_in_parent() noexcept override {
    if constexpr (kIsWaitedFor && kIsShared) {
      mutex_.unlock_shared();
    } else if constexpr (kIsWaitedFor) {
      mutex_.unlock();
    }
  }
  // Holders are gone and cannot unlock it.
  void renew_in_child() noexcept override { std::construct_at(&mutex_); }

  Mutex mutex_;
};

using ForkSafeMutex = ForkSafe<std::mutex, true>;
using ForkSafeSharedMutex = ForkSafe<std::shared_mutex, true>;
using ForkSafeTurn = ForkSafe<std::mutex, false>;

}  // namespace foretune
