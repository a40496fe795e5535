#include "foretune/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace foretune {
namespace {

TEST(ThreadPool, CallsTheBodyOncePerIndex) {
  for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4},
                                    std::size_t{5}, std::size_t{6}, std::size_t{1000}}) {
      // Plain integers: each index belongs to one thread, and run() orders them with ours.
      std::vector<int> calls(count);
      pool.run(count, [&](std::size_t index) { ++calls[index]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST(ThreadPool, SpreadsTheIndexOverTheThreads) {
  constexpr std::size_t kThreads = 3;
  ThreadPool pool(kThreads);
  std::vector<std::thread::id> owner(9);
  pool.run(owner.size(), [&](std::size_t index) { owner[index] = std::this_thread::get_id(); });
  EXPECT_EQ(owner[0], std::this_thread::get_id());
  for (std::size_t index = kThreads; index < owner.size(); ++index) {
    EXPECT_EQ(owner[index], owner[index - kThreads]);
  }
  EXPECT_EQ(std::set<std::thread::id>(owner.begin(), owner.end()).size(), kThreads);
}

TEST(ThreadPool, OneThreadRunsInOrderOnTheCaller) {
  ThreadPool pool(1);
  std::vector<std::size_t> order;
  pool.run(4, [&](std::size_t index) { order.push_back(index); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(ThreadPool, ManyShortLoopsSeeEachOthersResults) {
  ThreadPool pool(4);
  std::vector<std::uint64_t> values(64, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> next(values.size());
    pool.run(values.size(),
             [&](std::size_t i) { next[i] = values[i] * 3 + values[(i + 1) % values.size()]; });
    values = next;
  }
  std::vector<std::uint64_t> expected(64, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> next(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      next[i] = expected[i] * 3 + expected[(i + 1) % expected.size()];
    }
    expected = next;
  }
  EXPECT_EQ(values, expected);
}

TEST(ThreadPool, WakesAfterItsThreadsWentToSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<int> calls{0};
    pool.run(30, [&](std::size_t) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), 30);
  }
}

TEST(ThreadPool, WaitsForTheSlowestThread) {
  ThreadPool pool(2);
  std::atomic<bool> slow_done{false};
  pool.run(2, [&](std::size_t index) {
    if (index == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      slow_done = true;
    }
  });
  EXPECT_TRUE(slow_done);
}

TEST(ThreadPool, PoolsComeAndGoWithAndWithoutWork) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool idle(3);
    ThreadPool busy(3);
    std::atomic<int> calls{0};
    busy.run(6, [&](std::size_t) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), 6);
  }
}

TEST(ThreadPool, DifferentThreadsMayUseItOneAfterTheOther) {
  ThreadPool pool(2);
  std::mutex turn;
  std::atomic<int> calls{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::scoped_lock lock(turn);
        pool.run(4, [&](std::size_t) { calls.fetch_add(1); });
      }
    });
  }
  for (std::thread& user : users) {
    user.join();
  }
  EXPECT_EQ(calls.load(), 3 * 50 * 4);
}

// Whatever core the kernel wakes it on, a worker ends on another core than the caller.
TEST(ThreadPool, AWorkerLeavesTheCoreOfTheCaller) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
  if (CPU_COUNT(&usable) < 2) {
    GTEST_SKIP() << "needs two cores";
  }
  // In a thread of its own: the caller is bound to one core after another.
  std::thread([&] {
    ThreadPool pool(2);
    std::array<int, 2> core{};
    const auto where = [&](std::size_t index) { core.at(index) = ::sched_getcpu(); };
    for (int move = 0; move < 20; ++move) {
      pool.run(2, where);
      // To the core where the worker just was.
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<unsigned>(core[1]), &one);
      ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
      pool.run(2, where);
      EXPECT_NE(core[0], core[1]) << move;
      ASSERT_EQ(::sched_setaffinity(0, sizeof usable, &usable), 0);
    }
  }).join();
}

TEST(ThreadPool, AWorkerStaysWhereThereIsNoOtherCore) {
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    ThreadPool pool(3);
    std::array<int, 3> core{};
    pool.run(3, [&](std::size_t index) { core.at(index) = ::sched_getcpu(); });
    EXPECT_EQ(core[1], core[0]);
    EXPECT_EQ(core[2], core[0]);
  }).join();
}

}  // namespace
}  // namespace foretune
