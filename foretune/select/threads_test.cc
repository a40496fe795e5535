#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "foretune/models/infer/model_samples.h"
#include "foretune/select/select.h"
#include "foretune/select/workspace_pool.h"

namespace foretune {
namespace {

TEST(SelectThreads, AllThreadsGetTheAnswersOfOne) {
  constexpr std::uint64_t kSeed = 51;
  Rng rng(kSeed);
  const Model model = sample_model({.candidates = 150}, rng);
  const auto alone = Selector::create(model);
  const auto shared = Selector::create(model);
  ASSERT_TRUE(alone.has_value() && shared.has_value());
  std::vector<Problem> problems;
  std::vector<Choice> expected;
  for (int i = 0; i < 40; ++i) {
    problems.push_back(sample_gemm(rng));
    expected.push_back((*alone)->select_uncached(problems.back()));
  }
  std::atomic<int> different{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Rng own = Rng(kSeed).split(t);
      for (int i = 0; i < 300; ++i) {
        const std::size_t p = own.below(problems.size());
        const Choice choice = own.below(4) == 0 ? (*shared)->select_uncached(problems[p])
                                                : (*shared)->select(problems[p]);
        const bool same =
            choice.candidate == expected[p].candidate && choice.score == expected[p].score &&
            choice.margin == expected[p].margin && choice.reason == expected[p].reason;
        different += same ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(different.load(), 0) << "seed " << kSeed;
}

TEST(WorkspacePool, LendsEveryWorkspaceToOneBorrowerAtATime) {
  WorkspacePool pool(256);
  std::atomic<int> mixed{0};
  std::vector<std::thread> threads;
  // More threads than workspaces: some have to wait.
  for (int t = 0; t < 80; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const WorkspacePool::Lease lease = pool.borrow();
        for (std::byte& byte : lease.bytes()) {
          byte = static_cast<std::byte>(t);
        }
        if (i % 8 == 0) {
          std::this_thread::yield();
        }
        for (const std::byte byte : lease.bytes()) {
          mixed += byte == static_cast<std::byte>(t) ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(mixed.load(), 0);
}

TEST(WorkspacePool, GivesAlignedMemoryAndTakesItBack) {
  WorkspacePool pool(100);
  std::byte* first = nullptr;
  {
    const WorkspacePool::Lease lease = pool.borrow();
    first = lease.bytes().data();
    EXPECT_EQ(lease.bytes().size(), 100U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % WorkspacePool::kAlignment, 0U);
    const WorkspacePool::Lease other = pool.borrow();
    EXPECT_NE(other.bytes().data(), first);
  }
  EXPECT_EQ(pool.borrow().bytes().data(), first);
}

}  // namespace
}  // namespace foretune
