#include "foretune/graph/run/latency_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::graph {
namespace {

using ::testing::ElementsAre;

constexpr double kSecond = 1e9;
constexpr double kTarget = 8e5;
// With half of the speed, the target lies between the second and the third.
const std::vector<TimedAlternative> kAlternatives{{1e6, 92.0}, {6e5, 91.5}, {3e5, 90.0}};

// Returns the ns that a call of `work` ns takes when it begins at `now`.
using Machine = std::function<double(double now, double work)>;

struct Call {
  double begin = 0;
  double ns = 0;
  double target = 0;
  std::size_t chosen = 0;
};

// Calls back to back until `end`; `before_call` may change the target.
std::vector<Call> simulate(
    LatencyController& controller, const Machine& machine, double begin, double end,
    const std::vector<TimedAlternative>& real = kAlternatives,
    const std::function<void(double now)>& before_call = [](double) {}) {
  std::vector<Call> calls;
  for (double now = begin; now < end; now += calls.back().ns) {
    before_call(now);
    const std::size_t chosen = controller.next();
    const double ns = machine(now, real[chosen].expected_ns);
    calls.push_back({now, ns, controller.target_ns(), chosen});
    controller.finished(ns);
  }
  return calls;
}

// Returns the largest deviation of a mean from the mean target, relative to it, of all windows of
// one second that begin at least half a second after a step. They may hold the next step.
double worst_window(const std::vector<Call>& calls, const std::vector<double>& steps) {
  double worst = 0;
  double sum = 0;
  double targets = 0;
  std::size_t end = 0;
  for (const Call& first : calls) {
    while (end < calls.size() && calls[end].begin + calls[end].ns <= first.begin + kSecond) {
      sum += calls[end].ns;
      targets += calls[end].target;
      ++end;
    }
    if (end == calls.size()) {
      break;
    }
    const auto is_near = [&](double step) {
      return first.begin >= step && first.begin < step + kSecond / 2;
    };
    if (!std::any_of(steps.begin(), steps.end(), is_near)) {
      worst = std::max(worst, std::abs(sum / targets - 1));
    }
    sum -= first.ns;
    targets -= first.target;
  }
  return worst;
}

double mean_quality(const std::vector<Call>& calls) {
  double sum = 0;
  for (const Call& call : calls) {
    sum += kAlternatives[call.chosen].quality;
  }
  return sum / static_cast<double>(calls.size());
}

// The other process runs in the second half of every six seconds.
constexpr double kEnd = 21 * kSecond;
bool is_loaded(double now) { return std::fmod(now, 6 * kSecond) >= 3 * kSecond; }
std::vector<double> load_steps() {
  std::vector<double> steps{0};
  for (double at = 3 * kSecond; at < kEnd; at += 3 * kSecond) {
    steps.push_back(at);
  }
  return steps;
}

LatencyController controller_of(const std::vector<TimedAlternative>& alternatives, double target) {
  const auto made = LatencyController::create(alternatives, {.target_ns = target});
  EXPECT_TRUE(made);
  return *made;
}

// Lets two processes take turns of `slice` ns on one core while there is load, the other one for
// `others` ns.
Machine turns_of(double slice, double others) {
  return [=](double now, double work) {
    const double begin = now;
    constexpr double kGrain = 1e4;
    while (work > 0) {
      const double phase = std::fmod(now, slice + others);
      if (is_loaded(now) && phase >= slice) {
        now += slice + others - phase + 1;
        continue;
      }
      const double step = std::min(work, kGrain);
      now += step;
      work -= step;
    }
    return now - begin;
  };
}

TEST(LatencyController, HoldsATargetBetweenTwoAlternatives) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  const auto calls = simulate(controller, [](double, double work) { return work; }, 0, 5 * kSecond);
  EXPECT_LT(worst_window(calls, {}), 0.005);
  // The two neighbours take turns.
  EXPECT_NEAR(mean_quality(calls), 91.75, 0.02);
  EXPECT_NEAR(controller.slowdown(), 1, 1e-6);
}

TEST(LatencyController, FollowsALoadThatComesAndGoes) {
  for (const double scale : {0.1, 1.0, 10.0}) {
    std::vector<TimedAlternative> alternatives = kAlternatives;
    for (TimedAlternative& each : alternatives) {
      each.expected_ns *= scale;
    }
    for (const double factor : {1.2, 1.5, 2.0}) {
      SCOPED_TRACE(::testing::Message() << "calls " << scale << " as long, load " << factor);
      LatencyController controller = controller_of(alternatives, scale * kTarget);
      Rng rng(7);
      const auto calls = simulate(
          controller,
          [&](double now, double work) {
            return work * (is_loaded(now) ? factor : 1) * (0.9 + 0.2 * rng.uniform());
          },
          0, kEnd, alternatives);
      EXPECT_LT(worst_window(calls, load_steps()), 0.05);
    }
  }
}

TEST(LatencyController, CountsCallsThatWaitForTheCore) {
  for (const double slice : {1e6, 3e6, 4e6, 8e6}) {
    SCOPED_TRACE(slice);
    LatencyController controller = controller_of(kAlternatives, kTarget);
    const auto calls = simulate(controller, turns_of(slice, slice), 0, kEnd);
    EXPECT_LT(worst_window(calls, load_steps()), 0.05);
    // Less than 0.01 below the best that the means allow: 91.75 alone and 90.5 with load.
    EXPECT_GT(mean_quality(calls), 91.75 * 12 / 21 + 90.5 * 9 / 21 - 0.01);
  }
}

// A group of processes with a limit is stopped for the rest of each period.
TEST(LatencyController, LearnsLongStopsThatComeAgain) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  const auto calls = simulate(controller, turns_of(7e7, 3e7), 0, kEnd);
  EXPECT_LT(worst_window(calls, load_steps()), 0.05);
}

TEST(LatencyController, PaysForOutliersAndDoesNotBelieveThem) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  Rng rng(3);
  const auto calls = simulate(
      controller, [&](double, double work) { return work * (rng.below(500) == 0 ? 10 : 1); }, 0,
      kEnd);
  EXPECT_LT(worst_window(calls, {0}), 0.05);
  LatencyController stopped = controller_of(kAlternatives, kTarget);
  simulate(stopped, [](double, double work) { return work; }, 0, kSecond);
  stopped.finished(0.2 * kSecond);
  // A stop of 200 ms counts as one of 8 ms.
  EXPECT_LT(stopped.slowdown(), 1.5);
}

TEST(LatencyController, CorrectsWrongExpectations) {
  std::vector<TimedAlternative> real = kAlternatives;
  real[0].expected_ns *= 0.9;
  real[1].expected_ns *= 1.1;
  real[2].expected_ns *= 1.3;
  LatencyController controller = controller_of(kAlternatives, kTarget);
  const auto calls = simulate(
      controller, [](double now, double work) { return work * (is_loaded(now) ? 1.6 : 1); }, 0,
      kEnd, real);
  EXPECT_LT(worst_window(calls, load_steps()), 0.05);
}

TEST(LatencyController, TakesTheFastestOrTheBestOutsideOfItsReach) {
  Rng rng(5);
  const Machine machine = [&](double, double work) { return work * (0.8 + 0.4 * rng.uniform()); };
  LatencyController controller = controller_of(kAlternatives, 1e5);
  for (const Call& call : simulate(controller, machine, 0, kSecond)) {
    ASSERT_EQ(call.chosen, 2U);
  }
  // The debt of a target out of reach does not weigh on the next one.
  ASSERT_TRUE(controller.set_target(5e6));
  for (const Call& call : simulate(controller, machine, 0, kSecond)) {
    ASSERT_EQ(call.chosen, 0U);
  }
  ASSERT_TRUE(controller.set_target(kTarget));
  EXPECT_LT(worst_window(simulate(controller, machine, 0, 5 * kSecond), {0}), 0.05);
}

TEST(LatencyController, ReturnsFromALoadThatWasTooHeavy) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  const auto calls = simulate(
      controller,
      [](double now, double work) {
        return work * (now > 2 * kSecond && now < 4 * kSecond ? 10 : 1);
      },
      0, 8 * kSecond);
  std::vector<Call> after;
  for (const Call& call : calls) {
    if (call.begin >= 4 * kSecond) {
      after.push_back(call);
    }
  }
  EXPECT_LT(worst_window(after, {4 * kSecond}), 0.05);
}

TEST(LatencyController, FollowsAChangingTarget) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  int changes = 0;
  const auto calls = simulate(
      controller, [](double, double work) { return work; }, 0, kEnd, kAlternatives,
      [&](double now) {
        if (now >= 3 * kSecond * (changes + 1)) {
          ++changes;
          ASSERT_TRUE(controller.set_target(changes % 2 == 1 ? 4e5 : kTarget));
        }
      });
  EXPECT_EQ(changes, 6);
  EXPECT_LT(worst_window(calls, load_steps()), 0.02);
}

TEST(LatencyController, KeepsTheFrontAlone) {
  // One of the others is slower and worse, one the same as another, and one is beaten by turns.
  const LatencyController controller =
      controller_of({{5, 80}, {1, 50}, {9, 90}, {6, 79}, {5, 80}, {3, 60}, {9.5, 90}}, 4);
  EXPECT_THAT(controller.front(), ElementsAre(1, 0, 2));
  LatencyController alone = controller_of({{5, 80}}, 4);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(alone.next(), 0U);
    alone.finished(3);
  }
}

TEST(LatencyController, RefusesNonsense) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(LatencyController::create({}, {.target_ns = 1}));
  const std::vector<TimedAlternative> good{{1, 1}};
  for (const double bad : {0.0, -1.0, kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(
        LatencyController::create(std::vector<TimedAlternative>{{bad, 1}}, {.target_ns = 1}));
    EXPECT_FALSE(LatencyController::create(good, {.target_ns = bad}));
    EXPECT_FALSE(LatencyController::create(good, {.target_ns = 1, .window_ns = bad}));
  }
  EXPECT_FALSE(
      LatencyController::create(std::vector<TimedAlternative>{{1, kNan}}, {.target_ns = 1}));
  LatencyController controller = controller_of(kAlternatives, kTarget);
  EXPECT_FALSE(controller.set_target(0));
  EXPECT_EQ(controller.target_ns(), kTarget);
  controller.finished(kNan);
  controller.finished(-1);
  EXPECT_EQ(controller.slowdown(), 1);
  // A clock without resolution tells that calls take no time.
  for (int i = 0; i < 100000; ++i) {
    controller.finished(0);
    ASSERT_TRUE(std::isfinite(controller.slowdown()));
  }
  simulate(controller, [](double, double work) { return work; }, 0, kSecond);
  EXPECT_NEAR(controller.slowdown(), 1, 0.01);
}

TEST(LatencyController, DecidesInLittleTime) {
  LatencyController controller = controller_of(kAlternatives, kTarget);
  constexpr int kDecisions = 100000;
  std::size_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kDecisions; ++i) {
    sum += controller.next();
    controller.finished(7e5 + i % 1000);
  }
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_GT(sum, 0U);
  EXPECT_LT(elapsed.count() / kDecisions, 50) << "us; some 0.01 without sanitizers";
}

}  // namespace
}  // namespace foretune::graph
