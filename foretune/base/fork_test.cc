#include "foretune/base/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "foretune/base/testing/forked_child.h"
#include "foretune/base/thread_pool.h"

namespace foretune {
namespace {

using testing_support::Busy;
using testing_support::is_true_in_child;

bool runs_right(ThreadPool& pool) {
  for (int round = 0; round < 20; ++round) {
    std::vector<int> calls(100);
    std::vector<std::thread::id> owner(calls.size());
    pool.run(calls.size(), [&](std::size_t index) {
      ++calls[index];
      owner[index] = std::this_thread::get_id();
    });
    if (calls != std::vector<int>(100, 1) || owner[0] != std::this_thread::get_id() ||
        owner[1] == owner[0]) {
      return false;
    }
  }
  return true;
}

TEST(ForkedChild, RunsAPoolThatTheParentHasUsed) {
  if (!testing_support::kChildMayMakeThreads) {
    GTEST_SKIP() << "this sanitizer forbids threads in a child";
  }
  auto pool = std::make_unique<ThreadPool>(2);
  ASSERT_TRUE(runs_right(*pool));
  EXPECT_TRUE(is_true_in_child([&] {
    const bool is_right = runs_right(*pool);
    const bool is_right_in_its_child =
        static_cast<bool>(is_true_in_child([&] { return runs_right(*pool); }));
    pool.reset();
    return is_right && is_right_in_its_child;
  }));
  EXPECT_TRUE(runs_right(*pool));
}

TEST(ForkedChild, DestroysAPoolOfItsParent) {
  auto pool = std::make_unique<ThreadPool>(3);
  EXPECT_TRUE(is_true_in_child([&] {
    pool.reset();
    return true;
  }));
}

TEST(ForkedChild, RunsAPoolThatAnotherThreadWasRunning) {
  if (!testing_support::kChildMayMakeThreads) {
    GTEST_SKIP() << "this sanitizer forbids threads in a child";
  }
  ThreadPool pool(2);
  const Busy parent([&] { pool.run(2, [](std::size_t) {}); });
  for (int fork = 0; fork < 100; ++fork) {
    ASSERT_TRUE(is_true_in_child([&] { return runs_right(pool); })) << fork;
  }
}

TEST(ForkedChild, FindsWhatAMutexGuardsWhole) {
  ForkSafeMutex mutex;
  ForkSafeSharedMutex shared;
  int first = 0;
  int second = 0;
  int third = 0;
  const auto change = [&] {
    {
      const std::lock_guard lock(mutex);
      ++first;
      std::this_thread::yield();
      ++second;
    }
    const std::unique_lock lock(shared);
    third += 2;
    std::this_thread::yield();
    third -= 1;
    std::this_thread::yield();
    third -= 1;
  };
  const Busy one(change);
  const Busy other(change);
  for (int fork = 0; fork < 200; ++fork) {
    ASSERT_TRUE(is_true_in_child([&] {
      const std::lock_guard lock(mutex);
      const std::unique_lock exclusive(shared);
      return first == second && third == 0;
    })) << fork;
  }
}

// Threads take nested locks in an order of their own, and there are always some readers.
TEST(ForkedChild, IsMadeWhileOthersHoldSeveralLocks) {
  ForkSafeMutex inner;
  ForkSafeSharedMutex outer;
  ForkSafeMutex innermost;
  const auto nested = [&] {
    const std::shared_lock shared(outer);
    const std::lock_guard lock(inner);
    const std::lock_guard last(innermost);
  };
  const Busy one(nested);
  const Busy other(nested);
  std::shared_lock reader(outer);
  for (int fork = 0; fork < 200; ++fork) {
    ASSERT_TRUE(is_true_in_child([&] {
      const std::unique_lock exclusive(outer);
      const std::scoped_lock both(inner, innermost);
      return true;
    })) << fork;
  }
}

TEST(ForkedChild, FindsATurnFreeAndTheParentDoesNotWaitForIt) {
  ForkSafeTurn turn;
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_end{false};
  std::jthread holder([&] {
    const std::lock_guard lock(turn);
    is_held.store(true);
    is_held.notify_one();
    may_end.wait(false);
  });
  is_held.wait(false);
  EXPECT_TRUE(is_true_in_child([&] {
    const std::lock_guard lock(turn);
    return true;
  }));
  EXPECT_FALSE(turn.try_lock()) << "the parent's holder still holds it";
  may_end.store(true);
  may_end.notify_one();
  holder.join();
  EXPECT_TRUE(turn.try_lock());
  turn.unlock();
}

TEST(ForkedChild, HasAGenerationOfItsOwn) {
  const std::uint32_t own = fork_generation();
  EXPECT_TRUE(is_true_in_child([&] {
    return fork_generation() == own + 1 &&
           is_true_in_child([&] { return fork_generation() == own + 2; });
  }));
  EXPECT_EQ(fork_generation(), own);
}

TEST(ForkSafe, LocksComeAndGoWhileThereAreForks) {
  const Busy coming_and_going([] {
    const auto lock = std::make_unique<ForkSafeMutex>();
    const ForkSafeTurn turn;
    const std::lock_guard held(*lock);
  });
  for (int fork = 0; fork < 200; ++fork) {
    ASSERT_TRUE(is_true_in_child([] {
      ForkSafeMutex mutex;
      return mutex.try_lock();
    })) << fork;
  }
}

}  // namespace
}  // namespace foretune
