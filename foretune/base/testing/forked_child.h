// Helpers for tests that run code in a forked child, which must not hang, and in threads beside it.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace foretune::testing_support {

// ThreadSanitizer ends a child that starts threads when its parent had some.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kChildMayMakeThreads = false;
#else
inline constexpr bool kChildMayMakeThreads = true;
#endif

// Runs `body` again and again on a thread of its own until it is destroyed. The constructor returns
// after the first run.
class Busy {
 public:
  template <class Body>
  explicit Busy(Body body)
      : thread_([this, body](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            body();
            has_begun_.store(true);
          }
        }) {
    while (!has_begun_.load()) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<bool> has_begun_{false};
  std::jthread thread_;
};

// Forks a child and succeeds when body() is true there. A child that does not end is killed.
template <class Body>
testing::AssertionResult is_true_in_child(const Body& body) {
  constexpr unsigned kSeconds = 30;
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::signal(SIGALRM, SIG_DFL));
    ::alarm(kSeconds);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    return testing::AssertionFailure() << "no child";
  }
  if (WIFSIGNALED(status)) {
    return testing::AssertionFailure()
           << "the child was ended by signal " << WTERMSIG(status)
           << (WTERMSIG(status) == SIGALRM ? ": it did not return in time" : "");
  }
  return WEXITSTATUS(status) == 0 ? testing::AssertionSuccess()
                                  : testing::AssertionFailure() << "it is false in the child";
}

}  // namespace foretune::testing_support
