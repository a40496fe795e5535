// Locks that work in a forked child. Only the thread that called fork() lives on there: a lock that
// another thread held would stay locked, and the data it guards half changed.
//
//   ForkSafeMutex mutex;        // like std::mutex; a fork waits until nobody holds it
//   ForkSafeSharedMutex shared; // like std::shared_mutex; a fork waits for writers
//   ForkSafeTurn turn;          // like std::mutex, for long operations: a fork does not wait
//
// In the child, all locks are free. The data that a mutex guards is consistent there; the data that
// a turn guards may not be. A turn must therefore guard only data that serves threads: a thread
// pool makes its own anew when fork_generation() has changed.
//
// A fork tries to take all locks of the process at once. While it cannot, it waits and holds none,
// so the order in which other threads take them does not matter. A thread must not call fork()
// while it holds one. vfork(), posix_spawn() and clone() bypass this, as they bypass every
// pthread_atfork() handler.
//
// Thread safety: as the standard library's. Cost: as the standard library's; a fork takes a quarter
// of a microsecond more for each lock that exists.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace foretune {

// Returns a number that is raised in every child. An object made under another number belongs to a
// parent.
std::uint32_t fork_generation() noexcept;

// An object that a fork waits for, or that is renewed in the child.
class ForkParticipant {
 public:
  ForkParticipant(const ForkParticipant&) = delete;
  ForkParticipant& operator=(const ForkParticipant&) = delete;
  virtual ~ForkParticipant() = default;

 protected:
  ForkParticipant() = default;
  // The derived class calls join_forks() at the end of its constructor and leave_forks() at the
  // beginning of its destructor.
  void join_forks();
  void leave_forks() noexcept;

 private:
  friend class ForkParticipants;
  // Returns true when the process may fork now. Nothing changes then until one of the two functions
  // below is called.
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

  // A fork does not wait for readers: they change nothing, and there may always be some.
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
  // The threads that held the mutex are gone and cannot unlock it.
  void renew_in_child() noexcept override { std::construct_at(&mutex_); }

  Mutex mutex_;
};

using ForkSafeMutex = ForkSafe<std::mutex, true>;
using ForkSafeSharedMutex = ForkSafe<std::shared_mutex, true>;
using ForkSafeTurn = ForkSafe<std::mutex, false>;

}  // namespace foretune
