#include "foretune/loop/gym/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/gym/testing/evaluators.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop::gym {
namespace {

using ::testing::HasSubstr;
using testing_support::by_hash;
using testing_support::FunctionEvaluator;
using testing_support::of_gflops;
using testing_support::refused;

constexpr double kPeak = 200;

loop::Computation product() { return loop::matmul({.m = 64, .n = 64, .k = 64}).value(); }

// Returns more GFLOPS for more loops; refuses nests whose outermost loop is over k.
Evaluated by_loops(const loop::Nest& nest) {
  return nest.loops[0].var == 1 ? refused()
                                : of_gflops(10 * static_cast<double>(nest.loops.size()));
}

Environment made(Evaluator& evaluator, EnvironmentOptions options = {},
                 const ActionSet& actions = ActionSet::all(),
                 const loop::Computation& computation = product()) {
  return Environment::create(computation, actions, evaluator, kPeak, options).value();
}

TEST(Environment, StartsAtThePlainNest) {
  FunctionEvaluator evaluator(by_loops);
  const Environment environment = made(evaluator);
  EXPECT_EQ(environment.state(), State::start(product()));
  EXPECT_EQ(environment.gflops(), 30);
  EXPECT_EQ(environment.best().state, environment.state());
  EXPECT_EQ(environment.best().gflops, 30);
  EXPECT_TRUE(environment.history().empty());
  EXPECT_FALSE(environment.is_over());
  EXPECT_EQ(environment.legal_actions(),
            legal_actions(product(), environment.state(), ActionSet::all()));
}

TEST(Environment, RewardsWhatAnActionGainsOfThePeak) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator);
  EXPECT_DOUBLE_EQ(environment.step(CursorAction::kSplit4)->reward, 10 / kPeak);
  EXPECT_DOUBLE_EQ(environment.step(CursorAction::kDown)->reward, 0);
  EXPECT_DOUBLE_EQ(environment.step(CursorAction::kMerge)->reward, -10 / kPeak);
  ASSERT_EQ(environment.history().size(), 3U);
  EXPECT_EQ(environment.history()[0].action, CursorAction::kSplit4);
  EXPECT_EQ(environment.history()[0].gflops, 40);
  EXPECT_EQ(environment.history()[1].gflops, 40);
  EXPECT_EQ(environment.history()[2].gflops, 30);
  EXPECT_EQ(to_text(environment.actions_taken()), "split_4,down,merge");
}

TEST(Environment, EvaluatesNothingWhereTheNestStays) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator);
  EXPECT_EQ(evaluator.calls(), 1U);
  ASSERT_TRUE(environment.step(CursorAction::kDown));
  ASSERT_TRUE(environment.step(CursorAction::kUp));
  EXPECT_EQ(evaluator.calls(), 1U);
  ASSERT_TRUE(environment.step(CursorAction::kSplit4));
  EXPECT_EQ(evaluator.calls(), 2U);
  ASSERT_TRUE(environment.step(CursorAction::kStop));
  EXPECT_EQ(evaluator.calls(), 2U);
}

TEST(Environment, ARefusedScheduleIsWorthNothing) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator);
  const Result<StepResult> into = environment.step(CursorAction::kSwapDown);
  ASSERT_TRUE(into);
  EXPECT_DOUBLE_EQ(into->reward, -30 / kPeak);
  EXPECT_EQ(into->reason, "too many registers");
  EXPECT_EQ(environment.gflops(), 0);
  EXPECT_EQ(environment.runtime_seconds(), std::numeric_limits<double>::infinity());
  const Result<StepResult> still = environment.step(CursorAction::kSplit4);
  EXPECT_DOUBLE_EQ(still->reward, 0);
  EXPECT_FALSE(still->reason.empty());
  const Result<StepResult> out = environment.step(CursorAction::kSwapUp);
  EXPECT_DOUBLE_EQ(out->reward, 40 / kPeak);
  EXPECT_EQ(out->reason, "");
  EXPECT_EQ(environment.best().gflops, 40);
  EXPECT_EQ(environment.best().steps, 3U);
}

TEST(Environment, NoFigureThatMakesNoSenseIsRewarded) {
  FunctionEvaluator evaluator([](const loop::Nest& nest) {
    return nest.loops.size() == 3
               ? of_gflops(30)
               : Evaluated{.ok = true, .gflops = std::numeric_limits<double>::infinity()};
  });
  Environment environment = made(evaluator);
  EXPECT_DOUBLE_EQ(environment.step(CursorAction::kSplit4)->reward, -30 / kPeak);
  EXPECT_EQ(environment.best().gflops, 30);
}

TEST(Environment, AnIllegalActionIsAnErrorAndChangesNothing) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator, {}, ActionSet());
  for (const auto& [action, why] : std::vector<std::pair<CursorAction, std::string>>{
           {CursorAction::kUp, "m0 is the outermost loop"},
           {CursorAction::kMerge, "the action merge is not among those of the environment"}}) {
    const Result<StepResult> result = environment.step(action);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr(why));
  }
  EXPECT_EQ(environment.state(), State::start(product()));
  EXPECT_TRUE(environment.history().empty());
  EXPECT_EQ(evaluator.calls(), 1U);
}

TEST(Environment, EndsWithAStop) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator);
  const Result<StepResult> result = environment.step(CursorAction::kStop);
  EXPECT_TRUE(result->done);
  EXPECT_FALSE(result->truncated);
  EXPECT_EQ(result->reward, 0);
  EXPECT_TRUE(environment.is_over());
  EXPECT_EQ(
      std::count(environment.legal_actions().begin(), environment.legal_actions().end(), true), 0);
  const Result<StepResult> after = environment.step(CursorAction::kDown);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr("the episode is over after 1 steps"));
}

TEST(Environment, IsTruncatedAfterTheMostSteps) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator, {.max_steps = 2});
  const Result<StepResult> first = environment.step(CursorAction::kDown);
  EXPECT_FALSE(first->done || first->truncated);
  const Result<StepResult> second = environment.step(CursorAction::kDown);
  EXPECT_FALSE(second->done);
  EXPECT_TRUE(second->truncated);
  EXPECT_FALSE(environment.step(CursorAction::kUp));
}

TEST(Environment, IsDoneWhereNothingIsLegal) {
  const auto single = loop::reduction(1, 1, loop::Op::kAdd, false).value();
  FunctionEvaluator evaluator(by_hash());
  const ActionSet splits = ActionSet::parse("split_2,split_4").value();
  EXPECT_TRUE(made(evaluator, {}, splits, single).is_over());
  const auto small = loop::matmul({.m = 3, .n = 1, .k = 1}).value();
  Environment environment = made(evaluator, {}, splits, small);
  const Result<StepResult> result = environment.step(CursorAction::kSplit2);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->done);
  EXPECT_TRUE(environment.is_over());
}

TEST(Environment, ResetStartsTheNextEpisode) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator);
  ASSERT_TRUE(environment.step(CursorAction::kSplit4));
  ASSERT_TRUE(environment.step(CursorAction::kStop));
  EXPECT_EQ(environment.reset(), State::start(product()));
  EXPECT_FALSE(environment.is_over());
  EXPECT_TRUE(environment.history().empty());
  EXPECT_EQ(environment.best().gflops, 30);
  EXPECT_DOUBLE_EQ(environment.step(CursorAction::kSplit4)->reward, 10 / kPeak);
}

TEST(Environment, ResetsToAnyStateOfTheComputation) {
  FunctionEvaluator evaluator(by_loops);
  Environment environment = made(evaluator, {.max_loops = 4});
  const State start = parse_state(product(), "swap k0 @ k0").value();
  ASSERT_TRUE(environment.reset(start));
  EXPECT_EQ(environment.state(), start);
  EXPECT_FALSE(environment.reset(parse_state(product(), "split m0 4, split n0 4 @ k0").value()));
  EXPECT_FALSE(environment.reset(State{.nest = start.nest, .cursor = 3}));
  EXPECT_FALSE(environment.reset(State{}));
  EXPECT_EQ(environment.state(), start);
}

TEST(Environment, TellsRuntimesInSecondsAndNanoseconds) {
  FunctionEvaluator evaluator(
      [](const loop::Nest&) { return Evaluated{.ok = true, .seconds = 2.5e-6, .gflops = 80}; });
  const Environment environment = made(evaluator);
  EXPECT_DOUBLE_EQ(environment.runtime_seconds(), 2.5e-6);
  EXPECT_DOUBLE_EQ(environment.runtime_ns(), 2500);
  EXPECT_DOUBLE_EQ(environment.best().seconds, 2.5e-6);
}

TEST(Environment, RefusesOptionsThatMakeNoSense) {
  FunctionEvaluator evaluator(by_loops);
  const auto refusal = [&](const loop::Computation& computation, double peak,
                           EnvironmentOptions options) {
    const auto result = Environment::create(computation, ActionSet(), evaluator, peak, options);
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(refusal(product(), 0, {}), HasSubstr("a peak of 0 GFLOPS"));
  EXPECT_THAT(refusal(product(), std::nan(""), {}), HasSubstr("a peak of"));
  EXPECT_THAT(refusal(product(), kPeak, {.max_steps = 0}), HasSubstr("at least one step"));
  EXPECT_THAT(refusal(product(), kPeak, {.max_loops = 2}), HasSubstr("has 3 loops"));
  EXPECT_FALSE(refusal(loop::Computation{}, kPeak, {}).empty());
  EXPECT_EQ(evaluator.calls(), 0U);
}

// One action among the legal ones.
CursorAction any_legal(const Environment& environment, Rng& rng) {
  std::vector<CursorAction> legal;
  for (std::size_t i = 0; i < environment.actions().size(); ++i) {
    if (environment.legal_actions()[i]) {
      legal.push_back(environment.actions()[i]);
    }
  }
  return legal[rng.below(legal.size())];
}

TEST(Environment, RewardsOfAnEpisodeAddUpToItsGain) {
  loop::for_random_computations(31337, 300, [&](const loop::Computation& computation, Rng& rng) {
    FunctionEvaluator evaluator(by_hash(3));
    CachedEvaluator cached(evaluator);
    Environment environment =
        made(cached, {.max_loops = 12, .max_steps = 30}, ActionSet::all(), computation);
    const double start = environment.gflops();
    double sum = 0;
    double best = start;
    while (!environment.is_over()) {
      const Result<StepResult> result = environment.step(any_legal(environment, rng));
      ASSERT_TRUE(result) << result.error().message;
      sum += result->reward;
      const Evaluated evaluated = by_hash(3)(environment.state().nest);
      ASSERT_EQ(environment.gflops(), evaluated.counted_gflops());
      ASSERT_EQ(result->reason, evaluated.reason);
      ASSERT_EQ(result->done || result->truncated, environment.is_over());
      best = std::max(best, environment.gflops());
    }
    ASSERT_NEAR(sum, (environment.gflops() - start) / kPeak, 1e-12);
    ASSERT_EQ(environment.best().gflops, best);
    // The actions taken lead to the state, and the first of them to the best state.
    const std::vector<CursorAction> taken = environment.actions_taken();
    const auto replayed = [&](std::size_t steps) {
      return replay(computation, State::start(computation), std::span(taken).first(steps),
                    {.max_loops = 12})
          .value();
    };
    ASSERT_EQ(replayed(taken.size()), environment.state());
    ASSERT_EQ(replayed(environment.best().steps), environment.best().state);
  });
}

TEST(Environment, TheMaskIsThatOfItsSteps) {
  Rng rng(5);
  FunctionEvaluator evaluator(by_hash());
  Environment environment = made(evaluator, {.max_loops = 6, .max_steps = 8});
  for (int episode = 0; episode < 50; ++episode) {
    environment.reset();
    while (!environment.is_over()) {
      for (std::size_t i = 0; i < environment.actions().size(); ++i) {
        Environment copy = environment;
        ASSERT_EQ(copy.step(environment.actions()[i]).has_value(), environment.legal_actions()[i]);
      }
      ASSERT_TRUE(environment.step(any_legal(environment, rng)));
    }
  }
}

}  // namespace
}  // namespace foretune::loop::gym
