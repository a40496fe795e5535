#include "foretune/measure/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune {
namespace {

// A clock that only moves when a run takes time, or is read.
class FakeMachine {
 public:
  std::function<std::int64_t()> clock() {
    return [this] {
      now_ns_ += read_ns;
      return now_ns_;
    };
  }
  void pass(double ns) {
    fraction_ += ns;
    const auto whole = static_cast<std::int64_t>(fraction_);
    now_ns_ += whole;
    fraction_ -= static_cast<double>(whole);
  }
  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }
  std::int64_t read_ns = 0;

 private:
  std::int64_t now_ns_ = 1000;
  double fraction_ = 0;
};

// A run that computes its duration anew every time.
class FakeRun final : public Run {
 public:
  FakeRun(FakeMachine& machine, std::function<double(int)> duration_ns)
      : machine_(machine), duration_ns_(std::move(duration_ns)) {}
  void run() override { machine_.pass(duration_ns_(runs++)); }
  int runs = 0;

 private:
  FakeMachine& machine_;
  std::function<double(int)> duration_ns_;
};

class SimulatedRun final : public Run {
 public:
  explicit SimulatedRun(std::vector<double> times_ns) : times_ns_(std::move(times_ns)) {}
  void run() override { ++runs; }
  double simulated_ns() override { return times_ns_[next_++ % times_ns_.size()]; }
  bool simulated_is_bound() override { return is_bound; }
  double simulated_spread() override { return spread; }
  int runs = 0;
  bool is_bound = false;
  double spread = 0;

 private:
  std::vector<double> times_ns_;
  std::size_t next_ = 0;
};

const std::function<void()> kNoEviction = [] { FAIL() << "evicted in a warm protocol"; };

Timing time_fake(FakeMachine& machine, FakeRun& run, const Protocol& protocol, double incumbent) {
  return time_run(run, protocol, incumbent, machine.clock(), kNoEviction);
}

TEST(Timing, ShortKernelCostsSixMilliseconds) {
  FakeMachine machine;
  machine.read_ns = 25;
  FakeRun run(machine, [](int) { return 10'000; });
  const std::int64_t begin_ns = machine.now_ns();
  const Timing timing = time_fake(machine, run, Protocol{}, -1);
  const auto total_ns = machine.now_ns() - begin_ns;
  EXPECT_EQ(timing.windows_ns.size(), 5U);
  EXPECT_FALSE(timing.censored);
  for (const double window_ns : timing.windows_ns) {
    EXPECT_NEAR(window_ns, 10'000, 20);
  }
  EXPECT_GE(total_ns, 5'500'000);
  EXPECT_LE(total_ns, 6'000'000);
}

TEST(Timing, WindowsAreLongEnoughAlsoAfterSlowWarmUp) {
  FakeMachine machine;
  // The warm-up is 50 times slower: the first guess at the number of runs is far too small.
  FakeRun run(machine, [](int i) { return i < 3 ? 200'000 : 4'000; });
  const NowNs clock = machine.clock();
  const Protocol protocol;
  RunTimer timer(run, protocol, clock, kNoEviction);
  timer.warm_up();
  for (int i = 0; i < 5; ++i) {
    const std::int64_t begin_ns = machine.now_ns();
    EXPECT_NEAR(timer.window().ns, 4'000, 1);
    EXPECT_GE(machine.now_ns() - begin_ns, 1'000'000);
    EXPECT_LE(machine.now_ns() - begin_ns, 1'400'000);
  }
}

TEST(Timing, WarmUpLastsAsAskedButAtLeastOneRun) {
  FakeMachine machine;
  FakeRun quick(machine, [](int) { return 1'000; });
  const NowNs clock = machine.clock();
  const Protocol protocol;
  RunTimer quick_timer(quick, protocol, clock, kNoEviction);
  quick_timer.warm_up();
  EXPECT_EQ(quick.runs, 500);
  FakeRun slow(machine, [](int) { return 7'000'000; });
  RunTimer slow_timer(slow, protocol, clock, kNoEviction);
  slow_timer.warm_up();
  EXPECT_EQ(slow.runs, 1);
}

TEST(Timing, WarmUpMakesAtLeastTheRunsThatAreAskedFor) {
  for (const CacheState cache : {CacheState::kWarm, CacheState::kCold}) {
    FakeMachine machine;
    FakeRun run(machine, [](int) { return 7'000'000; });
    const NowNs clock = machine.clock();
    Protocol protocol;
    protocol.cache = cache;
    protocol.warmup_runs = 10;
    const std::function<void()> evict = [] {};
    RunTimer timer(run, protocol, clock, evict);
    timer.warm_up();
    EXPECT_EQ(run.runs, 10);
    EXPECT_EQ(timer.warm_up_runs(), 10);
  }
}

TEST(Timing, WarmRunsBeforeColdOnesDoNotCountAsTheFastest) {
  FakeMachine machine;
  bool cold = false;
  FakeRun run(machine, [&](int) {
    const double duration_ns = cold ? 5'000 : 1'000;
    cold = false;
    return duration_ns;
  });
  const std::function<void()> evict = [&] { cold = true; };
  Protocol protocol;
  protocol.cache = CacheState::kCold;
  protocol.warmup_runs = 4;
  const NowNs clock = machine.clock();
  RunTimer timer(run, protocol, clock, evict);
  timer.warm_up();
  EXPECT_DOUBLE_EQ(timer.fastest_ns(), 1'000);
  timer.window();
  EXPECT_DOUBLE_EQ(timer.fastest_ns(), 5'000);
}

TEST(Timing, StopsAfterOneWindowWhenClearlySlower) {
  FakeMachine machine;
  FakeRun run(machine, [](int) { return 30'000; });
  const std::int64_t begin_ns = machine.now_ns();
  const Timing timing = time_fake(machine, run, Protocol{}, 10'000);
  EXPECT_TRUE(timing.censored);
  EXPECT_EQ(timing.windows_ns.size(), 1U);
  EXPECT_LE(machine.now_ns() - begin_ns, 1'800'000);
  EXPECT_GE(timing.bound_ns, 20'000);
  EXPECT_LE(timing.bound_ns, 30'000);
}

TEST(Timing, NeverStopsWithoutIncumbentOrFactor) {
  FakeMachine machine;
  FakeRun run(machine, [](int) { return 30'000; });
  EXPECT_FALSE(time_fake(machine, run, Protocol{}, -1).censored);
  Protocol patient;
  patient.censor_factor = 0;
  EXPECT_FALSE(time_fake(machine, run, patient, 10).censored);
}

TEST(Timing, OnePreemptionDoesNotCensorAGoodConfig) {
  Protocol protocol;
  for (int victim = 0; victim < 400; victim += 7) {
    FakeMachine machine;
    FakeRun run(machine, [victim](int i) { return i == victim ? 4'000'000.0 : 10'000.0; });
    EXPECT_FALSE(time_fake(machine, run, protocol, 10'000).censored) << victim;
  }
  // With one run per window, the warm-up run is the second opinion on a slow window.
  for (int victim = 0; victim < 3; ++victim) {
    FakeMachine machine;
    FakeRun run(machine, [victim](int i) { return i == victim ? 6'000'000.0 : 1'500'000.0; });
    EXPECT_FALSE(time_fake(machine, run, protocol, 1'400'000).censored) << victim;
  }
}

TEST(Timing, OneVeryLongRunDecidesAlone) {
  FakeMachine machine;
  FakeRun endless(machine, [](int) { return 100e6; });
  const Timing timing = time_fake(machine, endless, Protocol{}, 1e6);
  EXPECT_TRUE(timing.censored);
  EXPECT_EQ(endless.runs, 1);
  EXPECT_TRUE(timing.windows_ns.empty());
  EXPECT_GE(timing.bound_ns, 2e6);
  EXPECT_LE(timing.bound_ns, 100e6);
  // 10 ms could still be a preempted run of the best config: a second one confirms.
  FakeRun long_run(machine, [](int) { return 10e6; });
  EXPECT_TRUE(time_fake(machine, long_run, Protocol{}, 1e6).censored);
  EXPECT_EQ(long_run.runs, 2);
}

TEST(Timing, TotalTimeIsLimitedToOneCompleteRunAtLeast) {
  FakeMachine machine;
  FakeRun run(machine, [](int) { return 400e6; });
  const Timing timing = time_fake(machine, run, Protocol{}, -1);
  EXPECT_EQ(run.runs, 1);
  EXPECT_THAT(timing.windows_ns, testing::ElementsAre(400e6));
  FakeRun shorter(machine, [](int) { return 100e6; });
  EXPECT_EQ(time_fake(machine, shorter, Protocol{}, -1).windows_ns.size(), 2U);
  EXPECT_EQ(shorter.runs, 3);
}

TEST(Timing, NoisyContendersGetMoreWindowsOthersDoNot) {
  const auto noisy = [](int i) { return i % 2 == 0 ? 1.0e6 : 1.5e6; };
  FakeMachine machine;
  FakeRun run(machine, noisy);
  EXPECT_EQ(time_fake(machine, run, Protocol{}, -1).windows_ns.size(), 15U);
  FakeRun contender(machine, noisy);
  EXPECT_EQ(time_fake(machine, contender, Protocol{}, 0.95e6).windows_ns.size(), 15U);
  FakeRun outsider(machine, noisy);
  EXPECT_EQ(time_fake(machine, outsider, Protocol{}, 0.6e6).windows_ns.size(), 5U);
}

TEST(Timing, CensoringIsRightForRandomRuns) {
  constexpr std::uint64_t kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  for (int i = 0; i < 400; ++i) {
    const double true_ns = std::exp(5 + 10 * rng.uniform());
    const double incumbent_ns = true_ns * std::exp(-3 + 4 * rng.uniform());
    Rng noise = rng.split(static_cast<std::uint64_t>(i));
    FakeMachine machine;
    FakeRun run(machine, [&](int) { return true_ns * (1 + 0.1 * noise.uniform()); });
    const Timing timing = time_fake(machine, run, Protocol{}, incumbent_ns);
    if (timing.censored) {
      // The bound is at most the time that a run really takes, and at least the promised threshold.
      EXPECT_LE(timing.bound_ns, true_ns * 1.1);
      EXPECT_GE(timing.bound_ns, 2 * incumbent_ns);
      EXPECT_GT(true_ns * 1.1, 2 * incumbent_ns);
    } else {
      EXPECT_LE(true_ns, 2 * incumbent_ns * 1.001);
      EXPECT_NEAR(*std::min_element(timing.windows_ns.begin(), timing.windows_ns.end()), true_ns,
                  0.12 * true_ns + 2);
    }
  }
}

TEST(Timing, ColdRunsAreEvictedOneByOne) {
  FakeMachine machine;
  bool cold = false;
  int evictions = 0;
  FakeRun run(machine, [&](int) {
    const double duration_ns = cold ? 5'000 : 1'000;
    cold = false;
    return duration_ns;
  });
  const std::function<void()> evict = [&] {
    machine.pass(30'000);
    cold = true;
    ++evictions;
  };
  Protocol protocol;
  protocol.cache = CacheState::kCold;
  const Timing timing = time_run(run, protocol, -1, machine.clock(), evict);
  EXPECT_THAT(timing.windows_ns, testing::Each(testing::DoubleEq(5'000)));
  EXPECT_EQ(timing.windows_ns.size(), 5U);
  EXPECT_EQ(evictions, 5);
  EXPECT_EQ(run.runs, 6);
}

TEST(Timing, ColdOutlierAtTheStartDoesNotCensor) {
  Protocol protocol;
  protocol.cache = CacheState::kCold;
  for (int victim = 0; victim < 4; ++victim) {
    FakeMachine machine;
    FakeRun run(machine, [victim](int i) { return i == victim ? 4e6 : 5e3; });
    EXPECT_FALSE(time_run(run, protocol, 5e3, machine.clock(), [] {}).censored) << victim;
  }
  FakeMachine machine;
  FakeRun slow(machine, [](int) { return 20e3; });
  EXPECT_TRUE(time_run(slow, protocol, 5e3, machine.clock(), [] {}).censored);
  EXPECT_EQ(slow.runs, 4);
}

TEST(Timing, SimulatedTimesAreTakenInsteadOfTheClock) {
  FakeMachine machine;
  SimulatedRun run({100, 110, 120});
  const std::int64_t before_ns = machine.now_ns();
  const Timing timing = time_run(run, Protocol{}, -1, machine.clock(), kNoEviction);
  EXPECT_EQ(run.runs, 1);
  EXPECT_EQ(machine.now_ns(), before_ns);
  EXPECT_GE(timing.windows_ns.size(), 5U);
  EXPECT_DOUBLE_EQ(*std::min_element(timing.windows_ns.begin(), timing.windows_ns.end()), 100);
  SimulatedRun slow({1000});
  EXPECT_TRUE(time_run(slow, Protocol{}, 100, machine.clock(), kNoEviction).censored);
}

TEST(Timing, ReplayedBoundsStayBoundsAndSpreadsStaySpreads) {
  FakeMachine machine;
  SimulatedRun bound({1000});
  bound.is_bound = true;
  const Timing censored = time_run(bound, Protocol{}, -1, machine.clock(), kNoEviction);
  EXPECT_TRUE(censored.censored);
  EXPECT_DOUBLE_EQ(censored.bound_ns, 1000);
  SimulatedRun known({1000});
  known.spread = 0.03;
  const Timing timing = time_run(known, Protocol{}, -1, machine.clock(), kNoEviction);
  const std::vector<MetricValue> metrics = timing_metrics(timing.windows_ns, timing.known_spread);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_DOUBLE_EQ(metrics[0].spread, 0.03);
}

TEST(Timing, AClockThatStandsStillDoesNotHang) {
  FakeMachine machine;
  FakeRun run(machine, [](int) { return 0; });
  Protocol protocol;
  protocol.window_ns = 1e4;
  protocol.warmup_ns = 1e3;
  EXPECT_EQ(time_fake(machine, run, protocol, -1).windows_ns.size(), 5U);
}

// A neighbour that takes a core away during some runs, which then take longer.
struct Neighbour {
  double taken_ns = 0;
  double take(double ns) {
    taken_ns += ns;
    return ns;
  }
  ReadWaits waits() {
    return [this] {
      const Waits out{taken_ns, taken_ns};
      taken_ns = 0;
      return out;
    };
  }
};

class TimingBesideNeighbour : public testing::Test {
 protected:
  Timing time_beside(FakeRun& run, double incumbent = -1) {
    return time_run(run, Protocol{}, incumbent, machine.clock(), kNoEviction, neighbour.waits());
  }

  FakeMachine machine;
  Neighbour neighbour;
};

TEST_F(TimingBesideNeighbour, DisturbedWindowsAreRepeatedAndDoNotCount) {
  // Every third run of 1.2 ms waits for half a millisecond.
  FakeRun run(machine, [&](int i) { return 1.2e6 + (i % 3 == 2 ? neighbour.take(5e5) : 0.0); });
  const Timing timing = time_beside(run);
  EXPECT_FALSE(timing.is_disturbed);
  EXPECT_THAT(timing.windows_ns, testing::SizeIs(5));
  EXPECT_THAT(timing.windows_ns, testing::Each(testing::DoubleNear(1.2e6, 1)));
}

TEST_F(TimingBesideNeighbour, WaitingForATwentiethIsNoDisturbance) {
  FakeRun run(machine, [&](int) { return 1.2e6 + neighbour.take(5e4); });
  const Timing timing = time_beside(run);
  EXPECT_FALSE(timing.is_disturbed);
  EXPECT_EQ(run.runs, 1 + 5);
}

TEST_F(TimingBesideNeighbour, WithoutAnUndisturbedWindowTheTimeIsMarked) {
  FakeRun run(machine, [&](int) { return 1e6 + neighbour.take(1e6); });
  const Timing timing = time_beside(run);
  EXPECT_TRUE(timing.is_disturbed);
  EXPECT_FALSE(timing.windows_ns.empty());
  // Three repetitions of each window.
  EXPECT_EQ(run.runs, 1 + 4 * 5);
}

TEST_F(TimingBesideNeighbour, RepetitionsEndWithTheTimeOfTheConfig) {
  FakeRun run(machine, [&](int) { return 4e7 + neighbour.take(6e7); });
  const Timing timing = time_beside(run);
  EXPECT_TRUE(timing.is_disturbed);
  EXPECT_EQ(run.runs, 3);
}

TEST_F(TimingBesideNeighbour, WhatANeighbourTookStopsNothingEarly) {
  // 1 ms of work takes 3 to 12 ms because of the neighbour: the config must not be stopped for it.
  for (const double taken_ns : {2e6, 5e6, 1.1e7}) {
    FakeRun run(machine, [&](int) { return 1e6 + neighbour.take(taken_ns); });
    const Timing timing = time_beside(run, 9e5);
    EXPECT_FALSE(timing.censored) << taken_ns;
  }
  // This one is slow in any case: the stored bound is below the time of its own work.
  FakeRun slow(machine, [&](int) { return 4e6 + neighbour.take(4e6); });
  const Timing timing = time_beside(slow, 9e5);
  EXPECT_TRUE(timing.censored);
  EXPECT_LE(timing.bound_ns, 4e6);
  EXPECT_GE(timing.bound_ns, 1.8e6);
}

TEST_F(TimingBesideNeighbour, OneLongRunOfAWaitingThreadDecidesNothing) {
  FakeRun run(machine, [&](int) { return 1e7 + neighbour.take(9e7); });
  const Timing timing = time_beside(run, 9e6);
  EXPECT_FALSE(timing.censored);
}

TEST(CountedWindows, AreTheUndisturbedOnesWhereThereAreTwo) {
  const CountedWindows most = counted_windows({{10, false}, {30, true}, {11, false}});
  EXPECT_THAT(most.ns, testing::ElementsAre(10, 11));
  EXPECT_FALSE(most.is_disturbed);
  const CountedWindows one = counted_windows({{10, false}, {30, true}, {11, true}});
  EXPECT_THAT(one.ns, testing::ElementsAre(10, 30, 11));
  EXPECT_TRUE(one.is_disturbed);
  EXPECT_FALSE(counted_windows({{10, false}}).is_disturbed);
  EXPECT_TRUE(counted_windows({{10, true}}).is_disturbed);
}

// Reading the waits takes longer than a short kernel runs.
TEST(Timing, ShortRunsOfTheWarmUpDoNotAsk) {
  FakeMachine machine;
  int asked = 0;
  FakeRun run(machine, [](int) { return 100; });
  const ReadWaits count = [&] {
    ++asked;
    return Waits{};
  };
  const Timing timing = time_run(run, Protocol{}, -1, machine.clock(), kNoEviction, count);
  EXPECT_FALSE(timing.is_disturbed);
  EXPECT_GT(run.runs, 5000);
  EXPECT_LE(asked, 1 + 5 * 5);
}

// A run in a process of its own, which fails the given number of runs after it began.
class FailingRun final : public Run, public DeviceClock {
 public:
  FailingRun(FakeMachine& machine, int good_runs, bool on_device)
      : machine_(machine), good_runs_(good_runs), on_device_(on_device) {}
  void run() override {
    machine_.pass(2'000'000);
    ++runs;
  }
  std::optional<RunFailure> failure() const override {
    return runs > good_runs_ ? std::optional<RunFailure>({.reason = "it fell over"}) : std::nullopt;
  }
  DeviceClock* device_clock() override { return on_device_ ? this : nullptr; }
  Result<double> first_run() override { return one_run(); }
  Status time(std::int64_t, std::int32_t windows, bool, std::vector<double>& windows_ns) override {
    for (std::int32_t i = 0; i < windows; ++i) {
      FORETUNE_TRY(const double time_ns, one_run());
      windows_ns.push_back(time_ns);
    }
    return {};
  }
  int runs = 0;

 private:
  Result<double> one_run() {
    run();
    if (failure()) {
      return fail(ErrorCode::kInternal, "it fell over");
    }
    return 2e6;
  }

  FakeMachine& machine_;
  int good_runs_;
  bool on_device_;
};

TEST(Timing, ARunThatFailsEndsTheMeasurementWhereverItIs) {
  for (const bool on_device : {false, true}) {
    for (const int good : {0, 1, 3}) {
      FakeMachine machine;
      FailingRun run(machine, good, on_device);
      Protocol protocol;
      protocol.warmup_runs = 2;
      const Timing timing = time_run(run, protocol, 1, machine.clock(), kNoEviction);
      // A good first run is stopped early at once: the second run would not happen.
      if (on_device && good > 0) {
        EXPECT_TRUE(timing.censored);
        continue;
      }
      EXPECT_EQ(timing.failed, good < 3) << good;
      EXPECT_EQ(run.runs, good < 3 ? good + 1 : 3) << good;
    }
    for (const int good : {1, 3, 4}) {
      FakeMachine machine;
      FailingRun run(machine, good, on_device);
      const Timing timing = time_run(run, Protocol{}, -1, machine.clock(), kNoEviction);
      EXPECT_TRUE(timing.failed) << good;
      EXPECT_FALSE(timing.refused) << good;
      EXPECT_EQ(run.runs, good + 1) << good;
    }
    FakeMachine machine;
    FailingRun run(machine, 100, on_device);
    const Timing timing = time_run(run, Protocol{}, -1, machine.clock(), kNoEviction);
    EXPECT_FALSE(timing.failed);
    EXPECT_EQ(timing.windows_ns.size(), 5U);
  }
}

TEST(Timing, MetricsAreMinimumMedianAndSpread) {
  const std::vector<MetricValue> metrics = timing_metrics({10, 12, 11, 30, 10.5});
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].metric, kTimeNs);
  EXPECT_DOUBLE_EQ(metrics[0].value, 10);
  EXPECT_EQ(metrics[1].metric, kMedianNs);
  EXPECT_DOUBLE_EQ(metrics[1].value, 11);
  EXPECT_NEAR(metrics[0].spread, (12 - 10.5) / 11, 1e-12);
  EXPECT_EQ(metrics[0].samples, 5U);
}

}  // namespace
}  // namespace foretune
