#include "foretune/hardware/thread_waits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace foretune {
namespace {

using std::chrono::milliseconds;

void spin_until(const std::atomic<bool>& done) {
  while (!done) {
  }
}

void spin_for(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Restricts the calling thread, and those it makes, to one core while it lives.
class OneCore {
 public:
  OneCore() {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &before_)) {
        CPU_SET(core, &one);
        break;
      }
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCore() { EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
};

class ThreadWaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    waits.emplace();
    if (!waits->known()) {
      GTEST_SKIP() << "this system does not count how long threads wait";
    }
  }
  std::optional<ThreadWaits> waits;
};

TEST_F(ThreadWaitsTest, SleepingIsNotWaiting) {
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(waits->read().all_ns, 20e6);
}

TEST_F(ThreadWaitsTest, ThreadsThatShareACoreWaitForEachOther) {
  const OneCore shared;
  std::atomic<bool> done = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] { spin_until(done); });
  }
  waits->read();
  spin_for(milliseconds(300));
  const Waits three = waits->read();
  done = true;
  others.clear();
  // Each has the core a third of the time. One that waits just now is not counted to the end.
  EXPECT_GT(three.longest_ns, 100e6);
  EXPECT_GT(three.all_ns, 300e6);
  EXPECT_LT(three.longest_ns, three.all_ns);
  // Those that ended are forgotten.
  waits->read();
  EXPECT_LT(waits->read().all_ns, 50e6);
}

TEST_F(ThreadWaitsTest, WatchesThreadsThatBeganLater) {
  const OneCore shared;
  waits->read();
  std::atomic<bool> done = false;
  std::jthread other([&] { spin_until(done); });
  spin_for(milliseconds(200));
  const Waits both = waits->read();
  done = true;
  other.join();
  EXPECT_GT(both.longest_ns, 50e6);
}

}  // namespace
}  // namespace foretune
