#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "foretune/base/file.h"
#include "foretune/base/testing/forked_child.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/forest/forest_body.h"
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

// All at the same moment.
void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::barrier start(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      work(t);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(SelectThreads, OnePreparesTheExactModelForAll) {
  constexpr std::uint64_t kSeed = 52;
  constexpr std::size_t kThreads = 8;
  Rng rng(kSeed);
  const Model model = sample_model_with_distilled({.candidates = 150}, rng);
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.ftm";
  ASSERT_TRUE(write_model(model, path));
  const auto eager = Selector::open(path);
  ASSERT_TRUE(eager.has_value());
  std::vector<Problem> problems;
  for (std::size_t t = 0; t < kThreads; ++t) {
    problems.push_back(sample_gemm(rng));
  }
  std::atomic<int> different{0};
  for (int round = 0; round < 20; ++round) {
    const auto deferred = Selector::open(path, Preparation::kAtFirstUse);
    ASSERT_TRUE(deferred.has_value());
    // Every member that may be the first to need it, and the one that does not.
    in_threads(kThreads, [&](std::size_t t) {
      const Problem& problem = problems[t];
      const Choice expected = (*eager)->select_uncached(problem);
      bool same = true;
      switch (t % 4) {
        case 0:
          same = (*deferred)->select(problem).candidate == expected.candidate;
          break;
        case 1:
          same = (*deferred)->select_fast(problem).choice.candidate ==
                 (*eager)->select_fast(problem).choice.candidate;
          break;
        case 2:
          same = (*deferred)->prepare().has_value();
          break;
        default:
          same = (*deferred)->model().body == model.body;
      }
      const Choice again = (*deferred)->select_uncached(problem);
      same = same && again.candidate == expected.candidate && again.score == expected.score;
      different += same ? 0 : 1;
    });
  }
  EXPECT_EQ(different.load(), 0) << "seed " << kSeed;
}

TEST(SelectThreads, AllLearnThatTheExactModelIsUnusable) {
  constexpr std::uint64_t kSeed = 53;
  Rng rng(kSeed);
  Model model = sample_model_with_distilled({.candidates = 150}, rng);
  edit_forests(model, [](auto& forests) { forests[0].feature_count += 1; });
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.ftm";
  ASSERT_TRUE(write_file_atomically(path, model_bytes(model)));
  const Problem problem = sample_gemm(rng);
  std::atomic<int> others{0};
  for (int round = 0; round < 20; ++round) {
    const auto deferred = Selector::open(path, Preparation::kAtFirstUse);
    ASSERT_TRUE(deferred.has_value());
    in_threads(8, [&](std::size_t t) {
      const bool is_right =
          t % 2 == 0 ? (*deferred)->select(problem).reason == AbstainReason::kUnusableModel
                     : (*deferred)->prepare().error().code == ErrorCode::kMismatch;
      others += is_right ? 0 : 1;
    });
  }
  EXPECT_EQ(others.load(), 0);
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

// Borrows as many as there are, then does something.
void borrow_all(WorkspacePool& pool, std::size_t count, const std::function<void()>& then) {
  if (count == 0) {
    then();
    return;
  }
  const WorkspacePool::Lease lease = pool.borrow();
  borrow_all(pool, count - 1, then);
}

TEST(WorkspacePool, LendsAForkedChildWhatThreadsOfTheParentHave) {
  WorkspacePool pool(64);
  std::atomic<bool> are_borrowed{false};
  std::atomic<bool> may_end{false};
  const std::jthread borrower([&] {
    borrow_all(pool, WorkspacePool::kMaxWorkspaces, [&] {
      are_borrowed.store(true);
      are_borrowed.notify_one();
      may_end.wait(false);
    });
  });
  are_borrowed.wait(false);
  EXPECT_TRUE(testing_support::is_true_in_child([&] {
    bool is_done = false;
    borrow_all(pool, WorkspacePool::kMaxWorkspaces, [&] { is_done = true; });
    return is_done;
  }));
  may_end.store(true);
  may_end.notify_one();
}

}  // namespace
}  // namespace foretune
