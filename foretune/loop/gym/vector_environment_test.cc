#include "foretune/loop/gym/vector_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/gym/testing/evaluators.h"

namespace foretune::loop::gym {
namespace {

using testing_support::by_hash;
using testing_support::FunctionEvaluator;

constexpr double kTaskPeak = 100;

std::unique_ptr<NestTask> task_of(const Computation& computation,
                                  FunctionEvaluator::Function function) {
  return NestTask::create(computation, VectorUnit::of(CpuIsa::kAvx2),
                          std::make_unique<FunctionEvaluator>(std::move(function)), kTaskPeak)
      .value();
}

struct Tasks {
  std::vector<std::unique_ptr<NestTask>> owned;
  std::vector<NestTask*> pointers;
  explicit Tasks(std::uint64_t refuse_one_in = 0) {
    for (const std::int64_t n : {24, 40, 96}) {
      owned.push_back(task_of(matmul({.m = 32, .n = n, .k = 20}).value(), by_hash(refuse_one_in)));
      pointers.push_back(owned.back().get());
    }
  }
};

std::vector<std::uint32_t> random_actions(const VectorEnvironment& environment, Rng& rng) {
  std::vector<std::uint32_t> out;
  for (std::size_t e = 0; e < environment.episodes(); ++e) {
    const auto mask = environment.masks().subspan(e * LoopActions::kCount, LoopActions::kCount);
    std::uint32_t chosen = 0;
    do {
      chosen = static_cast<std::uint32_t>(rng.below(LoopActions::kCount));
    } while (mask[chosen] == 0);
    out.push_back(chosen);
  }
  return out;
}

TEST(VectorEnvironmentTest, RewardsOfAnEpisodeAddUpToItsGain) {
  for (const RewardKind kind : {RewardKind::kShare, RewardKind::kLog, RewardKind::kBest}) {
    Tasks tasks;
    VectorEnvironment environment(tasks.pointers, {.episodes = 7, .max_steps = 5, .reward = kind},
                                  4);
    Rng rng(9);
    std::vector<double> sums(environment.episodes());
    // The start is the least that the best may be.
    std::vector<double> bests(environment.episodes(), -1e9);
    std::size_t ended = 0;
    for (int step = 0; step < 60; ++step) {
      const std::vector<std::uint32_t> actions = random_actions(environment, rng);
      ASSERT_TRUE(environment.step(actions));
      for (std::size_t e = 0; e < environment.episodes(); ++e) {
        sums[e] += static_cast<double>(environment.rewards()[e]);
        const auto last = static_cast<double>(environment.log_shares()[e]);
        bests[e] = std::max(bests[e], last);
        if (environment.ends()[e] == 0) {
          continue;
        }
        NestTask& task = *tasks.pointers[environment.stepped_tasks()[e]];
        const double start = *task.log_share(Nest::plain(task.computation()));
        const double best = std::max(start, bests[e]);
        bests[e] = -1e9;
        const double gain = kind == RewardKind::kShare ? std::exp(last) - std::exp(start)
                            : kind == RewardKind::kLog ? last - start
                                                       : best - start;
        EXPECT_NEAR(sums[e], gain, 1e-5);
        sums[e] = 0;
        ++ended;
      }
    }
    EXPECT_GT(ended, 7U);
  }
}

TEST(VectorEnvironmentTest, EpisodesEndAtStopAndAtTheLastStep) {
  Tasks tasks;
  VectorEnvironment environment(tasks.pointers, {.episodes = 2, .max_steps = 2}, 1);
  std::vector<std::uint32_t> actions = {LoopActions::kStop, LoopActions::kSwap};
  ASSERT_TRUE(environment.step(actions));
  EXPECT_EQ(environment.ends()[0], 1);
  EXPECT_EQ(environment.ends()[1], 0);
  EXPECT_EQ(environment.rewards()[0], 0);
  // The first one shows the start of another episode already.
  EXPECT_EQ(environment.nest(0),
            Nest::plain(tasks.pointers[environment.tasks()[0]]->computation()));
  actions = {LoopActions::kSwap, LoopActions::kSwap};
  ASSERT_TRUE(environment.step(actions));
  EXPECT_EQ(environment.ends()[0], 0);
  EXPECT_EQ(environment.ends()[1], 1);
}

TEST(VectorEnvironmentTest, AnIllegalActionChangesNothing) {
  Tasks tasks;
  VectorEnvironment environment(tasks.pointers, {.episodes = 2}, 1);
  const Nest before = environment.nest(0);
  const std::uint32_t beyond = 11 * LoopActions::kOperations + LoopActions::kSwap;
  const Status status = environment.step(std::vector<std::uint32_t>{LoopActions::kSwap, beyond});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(environment.nest(0), before);
}

TEST(VectorEnvironmentTest, ARefusedNestIsWorseThanTheStartAndLaterOnesCountFromThere) {
  Tasks tasks(3);
  VectorEnvironment environment(tasks.pointers, {.episodes = 16, .max_steps = 6}, 2);
  Rng rng(5);
  bool saw_refusal = false;
  for (int step = 0; step < 100; ++step) {
    const std::vector<std::uint32_t> actions = random_actions(environment, rng);
    ASSERT_TRUE(environment.step(actions));
    for (std::size_t e = 0; e < environment.episodes(); ++e) {
      ASSERT_TRUE(std::isfinite(environment.rewards()[e]));
      saw_refusal = saw_refusal || environment.rewards()[e] <= -1;
    }
  }
  EXPECT_TRUE(saw_refusal);
}

TEST(VectorEnvironmentTest, TheSameSeedGivesTheSameEpisodes) {
  std::vector<std::vector<float>> rewards;
  for (int run = 0; run < 2; ++run) {
    Tasks tasks;
    VectorEnvironment environment(tasks.pointers, {.episodes = 5}, 7);
    Rng rng(3);
    std::vector<float> all;
    for (int step = 0; step < 40; ++step) {
      ASSERT_TRUE(environment.step(random_actions(environment, rng)));
      all.insert(all.end(), environment.rewards().begin(), environment.rewards().end());
      all.insert(all.end(), environment.loops().begin(), environment.loops().end());
    }
    rewards.push_back(std::move(all));
  }
  EXPECT_EQ(rewards[0], rewards[1]);
}

TEST(VectorEnvironmentTest, AgentsSeeTheNestThatTheyAreAtAndNothingOfEarlierOnes) {
  // More nests than observations are kept of.
  Tasks tasks;
  VectorEnvironment environment({tasks.pointers.front()}, {.episodes = 64, .max_steps = 9}, 3);
  Rng rng(8);
  std::vector<float> loops(PolicyObserver::kLoopFloats);
  std::vector<float> whole(PolicyObserver::kWholeColumns);
  std::vector<std::uint8_t> mask(LoopActions::kCount);
  std::vector<std::size_t> steps(environment.episodes());
  for (int step = 0; step < 200; ++step) {
    ASSERT_TRUE(environment.step(random_actions(environment, rng)));
    for (std::size_t e = 0; e < environment.episodes(); ++e) {
      steps[e] = environment.ends()[e] != 0 ? 0 : steps[e] + 1;
      const NestTask& task = *tasks.pointers[environment.tasks()[e]];
      const Nest nest = environment.nest(e);
      const PolicyObserver observer(task.computation(), task.unit(), {});
      observer.observe(nest, 1 - static_cast<double>(steps[e]) / 9, loops, whole);
      task.actions().write_mask(nest, mask);
      const auto seen = environment.loops().subspan(e * loops.size(), loops.size());
      ASSERT_TRUE(std::equal(seen.begin(), seen.end(), loops.begin()));
      const auto facts = environment.whole().subspan(e * whole.size(), whole.size());
      ASSERT_TRUE(std::equal(facts.begin(), facts.end(), whole.begin()));
      const auto legal = environment.masks().subspan(e * mask.size(), mask.size());
      ASSERT_TRUE(std::equal(legal.begin(), legal.end(), mask.begin()));
      ASSERT_EQ(environment.counts()[e], nest.loops.size());
    }
  }
  EXPECT_GT(tasks.owned.front()->evaluations(), NestTask::kSeenNests);
}

TEST(NestTaskTest, AKnownStepEvaluatesNothing) {
  int calls = 0;
  const auto task = task_of(matmul({.m = 8, .n = 8, .k = 8}).value(), [&](const Nest&) {
    ++calls;
    return testing_support::of_gflops(40);
  });
  const NestTask::NestId start = task->start().to;
  const auto there = task->step(start, LoopActions::kSwap);
  ASSERT_TRUE(there);
  EXPECT_TRUE(there->is_new);
  const int before = calls;
  EXPECT_FALSE(task->step(start, LoopActions::kSwap)->is_new);
  // Back by the same swap: another action, but a nest that is known.
  EXPECT_EQ(task->step(there->to, LoopActions::kSwap)->to, start);
  EXPECT_EQ(calls, before);
  EXPECT_EQ(task->nest(start), Nest::plain(task->computation()));
  const auto illegal = task->step(start, 11 * LoopActions::kOperations);
  ASSERT_FALSE(illegal);
  EXPECT_EQ(illegal.error().code, ErrorCode::kInvalidArgument);
}

TEST(VectorEnvironmentTest, NewNestsHaveAPrice) {
  Tasks free_tasks;
  Tasks tasks;
  VectorEnvironment free_of_charge(free_tasks.pointers, {.episodes = 1}, 7);
  VectorEnvironment priced(tasks.pointers, {.episodes = 1, .price = 0.25}, 7);
  const std::vector<std::uint32_t> swap = {LoopActions::kSwap};
  ASSERT_TRUE(free_of_charge.step(swap));
  ASSERT_TRUE(priced.step(swap));
  EXPECT_FLOAT_EQ(free_of_charge.rewards()[0] - priced.rewards()[0], 0.25F);
}

TEST(NestTaskTest, ALuckyTimeDoesNotBecomeTheBest) {
  int calls = 0;
  const auto task = task_of(matmul({.m = 8, .n = 8, .k = 8}).value(), [&](const Nest&) {
    return testing_support::of_gflops(++calls == 1 ? 90 : 40);
  });
  const Nest nest = Nest::plain(task->computation());
  EXPECT_NEAR(*task->log_share(nest), std::log(0.4), 1e-9);
  EXPECT_EQ(calls, 2);
  EXPECT_NEAR(*task->log_share(nest), std::log(0.4), 1e-9);
  EXPECT_EQ(calls, 2);
  ASSERT_TRUE(task->best());
  EXPECT_NEAR(task->best()->log_share, std::log(0.4), 1e-9);
  EXPECT_EQ(task->take_evaluated().size(), 1U);
  EXPECT_TRUE(task->take_evaluated().empty());
}

TEST(NestTaskTest, SeveralThreadsShareATask) {
  Tasks tasks;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&tasks, t] {
      VectorEnvironment environment(tasks.pointers, {.episodes = 8}, t);
      Rng rng(t);
      for (int step = 0; step < 50; ++step) {
        EXPECT_TRUE(environment.step(random_actions(environment, rng)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& task : tasks.owned) {
    EXPECT_TRUE(task->best());
  }
}

TEST(TransitionTableTest, FindsWhatWasAddedAndNothingElse) {
  TransitionTable table;
  for (std::uint32_t from = 0; from < 200; ++from) {
    for (std::size_t action = from % 3; action < LoopActions::kCount; action += 7) {
      EXPECT_FALSE(table.find(from, action));
      table.add(from, action, 1000 * from + static_cast<std::uint32_t>(action));
    }
  }
  for (std::uint32_t from = 0; from < 200; ++from) {
    for (std::size_t action = 0; action < LoopActions::kCount; ++action) {
      const bool is_there = action >= from % 3 && (action - from % 3) % 7 == 0;
      const auto found = table.find(from, action);
      ASSERT_EQ(found.has_value(), is_there) << from << " " << action;
      ASSERT_EQ(found.value_or(0), is_there ? 1000 * from + action : 0);
    }
  }
  EXPECT_GT(table.size(), 9000U);
}

TEST(NestTaskTest, APeakOfNothingIsRefused) {
  const auto task =
      NestTask::create(matmul({.m = 8, .n = 8, .k = 8}).value(), VectorUnit::of(CpuIsa::kAvx2),
                       std::make_unique<FunctionEvaluator>(by_hash()), 0);
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune::loop::gym
