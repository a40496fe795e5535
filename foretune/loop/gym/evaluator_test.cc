#include "foretune/loop/gym/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/gym/testing/evaluators.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop::gym {
namespace {

using testing_support::by_hash;
using testing_support::FunctionEvaluator;
using testing_support::of_gflops;
using testing_support::refused;

std::vector<loop::Nest> some_nests(std::size_t count) {
  Rng rng(12);
  const auto computation = loop::matmul({.m = 64, .n = 48, .k = 32}).value();
  std::vector<loop::Nest> out;
  while (out.size() < count) {
    const loop::Nest nest = loop::random_nest(computation, rng, 8);
    if (std::find(out.begin(), out.end(), nest) == out.end()) {
      out.push_back(nest);
    }
  }
  return out;
}

TEST(Evaluated, CountsOnlyWhatMakesSense) {
  EXPECT_EQ(of_gflops(12).counted_gflops(), 12);
  EXPECT_EQ(refused().counted_gflops(), 0);
  EXPECT_EQ(Evaluated().counted_gflops(), 0);
  for (const double gflops : {-1.0, 0.0, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ((Evaluated{.ok = true, .gflops = gflops}.counted_gflops()), 0);
  }
}

TEST(CachedEvaluator, AsksOncePerSchedule) {
  FunctionEvaluator evaluator(by_hash());
  CachedEvaluator cached(evaluator);
  for (const loop::Nest& nest : some_nests(20)) {
    const Evaluated first = cached.evaluate(nest);
    const Evaluated again = cached.evaluate(nest);
    EXPECT_FALSE(first.was_cached);
    EXPECT_TRUE(again.was_cached);
    EXPECT_EQ(again.gflops, by_hash()(nest).gflops);
    EXPECT_EQ(again.seconds, first.seconds);
  }
  EXPECT_EQ(evaluator.calls(), 20U);
  EXPECT_EQ(cached.misses(), 20U);
  EXPECT_EQ(cached.hits(), 20U);
  EXPECT_EQ(cached.size(), 20U);
}

TEST(CachedEvaluator, KeepsRefusalsWithTheirReason) {
  FunctionEvaluator evaluator([](const loop::Nest&) { return refused(); });
  CachedEvaluator cached(evaluator);
  const loop::Nest nest = some_nests(1)[0];
  cached.evaluate(nest);
  const Evaluated again = cached.evaluate(nest);
  EXPECT_FALSE(again.ok);
  EXPECT_EQ(again.reason, refused().reason);
  EXPECT_EQ(evaluator.calls(), 1U);
}

TEST(CachedEvaluator, TellsSchedulesWithTheSameHashApart) {
  FunctionEvaluator evaluator(by_hash());
  CachedEvaluator cached(evaluator, [](const loop::Nest&) { return std::uint64_t{1}; });
  const std::vector<loop::Nest> nests = some_nests(50);
  for (int round = 0; round < 2; ++round) {
    for (const loop::Nest& nest : nests) {
      EXPECT_EQ(cached.evaluate(nest).gflops, by_hash()(nest).gflops);
    }
  }
  EXPECT_EQ(cached.misses(), nests.size());
  EXPECT_EQ(cached.hits(), nests.size());
}

TEST(CachedEvaluator, AsksAgainForWhatItForgot) {
  FunctionEvaluator evaluator(by_hash());
  CachedEvaluator cached(evaluator);
  const std::vector<loop::Nest> nests = some_nests(2);
  cached.evaluate(nests[0]);
  cached.evaluate(nests[1]);
  cached.forget(nests[0]);
  EXPECT_FALSE(cached.evaluate(nests[0]).was_cached);
  EXPECT_TRUE(cached.evaluate(nests[1]).was_cached);
  cached.clear();
  EXPECT_FALSE(cached.evaluate(nests[1]).was_cached);
  EXPECT_EQ(evaluator.calls(), 4U);
}

}  // namespace
}  // namespace foretune::loop::gym
