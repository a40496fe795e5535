#include "foretune/model/train/internal/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/text.h"

namespace foretune::train_internal {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SideBySide, CallsEveryTaskOnceWhateverTheThreads) {
  for (const std::uint32_t threads : {0U, 1U, 2U, 5U, 64U}) {
    std::vector<std::atomic<int>> calls(23);
    ASSERT_TRUE(run_side_by_side(calls.size(), threads, nullptr,
                                 [&](std::size_t i, const ProgressHook& progress) -> Status {
                                   EXPECT_EQ(progress, nullptr);
                                   ++calls[i];
                                   return {};
                                 }));
    EXPECT_THAT(calls, Each(::testing::ResultOf([](const auto& n) { return n.load(); }, 1)))
        << threads;
  }
}

TEST(SideBySide, RunsAsManyAtOnceAsThereAreThreads) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  ASSERT_TRUE(run_side_by_side(12, 3, nullptr,
                               [&](std::size_t /*i*/, const ProgressHook& /*progress*/) -> Status {
                                 const int now = ++running;
                                 int seen = most.load();
                                 while (now > seen && !most.compare_exchange_weak(seen, now)) {
                                 }
                                 std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                 --running;
                                 return {};
                               }));
  EXPECT_EQ(most.load(), 3);
}

TEST(SideBySide, ReturnsTheErrorOfTheLowestAndStartsNoMore) {
  for (const std::uint32_t threads : {1U, 4U}) {
    std::atomic<int> calls = 0;
    const Status status = run_side_by_side(
        1000, threads, nullptr, [&](std::size_t i, const ProgressHook& /*progress*/) -> Status {
          ++calls;
          if (i == 2 || i == 3) {
            return fail(ErrorCode::kInvalidArgument, "task ", i);
          }
          return {};
        });
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("task 2"));
    EXPECT_LT(calls.load(), 1000);
  }
}

TEST(SideBySide, PassesAllReportsOnByTheThreadThatCalled) {
  for (const std::uint32_t threads : {1U, 3U}) {
    std::vector<std::string> stages;
    std::vector<std::thread::id> by;
    ASSERT_TRUE(run_side_by_side(
        6, threads,
        [&](const TrainProgress& report) {
          stages.push_back(report.stage);
          by.push_back(std::this_thread::get_id());
          return true;
        },
        [](std::size_t i, const ProgressHook& progress) -> Status {
          EXPECT_TRUE(progress({.stage = concat(i)}));
          EXPECT_TRUE(progress({.stage = concat(i, " again")}));
          return {};
        }));
    EXPECT_THAT(stages, SizeIs(12));
    std::sort(stages.begin(), stages.end());
    EXPECT_EQ(stages.front(), "0");
    EXPECT_EQ(stages.back(), "5 again");
    EXPECT_THAT(by, Each(std::this_thread::get_id()));
  }
}

TEST(SideBySide, StopsAllTasksWhenTheHookSaysSo) {
  for (const std::uint32_t threads : {1U, 3U}) {
    int reports = 0;
    const Status status = run_side_by_side(
        3, threads, [&](const TrainProgress& /*report*/) { return ++reports < 5; },
        [](std::size_t /*i*/, const ProgressHook& progress) -> Status {
          while (progress({.stage = "on and on"})) {
          }
          return fail(ErrorCode::kCancelled, "stopped");
        });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(reports, 5);
  }
}

}  // namespace
}  // namespace foretune::train_internal
