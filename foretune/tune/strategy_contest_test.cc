#include "foretune/tune/strategy_contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/families/null/null.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/testing/measurers.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::HashMeasurer;

constexpr const char* kAll =
    "base,random,greedy1,greedy2,beam2dfs,beam4dfs,beam2bfs,beam4bfs,annealing,evolution,mcts,"
    "guided,textbook";

NestBench product(const char* text) {
  return make_nest_bench(loop::parse_computation(text).value(),
                         {.actions = loop::ActionSet(), .has_textbook_defaults = false})
      .value();
}

ContestOptions limited_to(std::uint64_t measurements) {
  ContestOptions options;
  options.tune.budget.measurements = measurements;
  return options;
}

TEST(Contestant, NamesCarryTheirNumbers) {
  const Contestant beam = Contestant::parse("beam12bfs").value();
  EXPECT_EQ(beam.strategy, "beam-bfs");
  EXPECT_EQ(beam.width, 12U);
  EXPECT_EQ(Contestant::parse("beam2dfs")->strategy, "beam-dfs");
  EXPECT_EQ(Contestant::parse("greedy3")->lookahead, 3U);
  EXPECT_EQ(Contestant::parse("greedy")->lookahead, 1U);
  EXPECT_EQ(Contestant::parse("bruteforce")->strategy, "exhaustive");
  EXPECT_EQ(Contestant::parse("start")->strategy, "");
  EXPECT_GT(Contestant::parse("textbook")->proposals, 100U);
  for (const char* name : {"", "beam", "beambfs", "beam0bfs", "beam-1dfs", "greedyx",
                           "greedy99999999999999999999", "magic"}) {
    EXPECT_THAT(Contestant::parse(name).error().message, HasSubstr("there are start")) << name;
  }
  EXPECT_EQ(Contestant::parse_list("base, random").value()[1].name, "random");
  EXPECT_THAT(Contestant::parse_list("base,base").error().message, HasSubstr("is there twice"));
}

TEST(RunContest, EveryStrategyKeepsToItsBudgetAndRepeats) {
  const NestBench bench = product("mm m=64 n=64 k=64");
  const std::unique_ptr<Space> space = bench.family->space(bench.problem).value();
  const std::vector<Contestant> contestants = Contestant::parse_list(kAll).value();
  HashMeasurer measurer(5);
  const auto run = [&] {
    return run_contest(*bench.family, measurer, nullptr, bench.problem, contestants, limited_to(60),
                       {});
  };
  const auto result = run();
  ASSERT_TRUE(result) << result.error().message;
  const ContestResult again = run().value();
  ASSERT_EQ(result->entries.size(), contestants.size());
  for (std::size_t e = 0; e < contestants.size(); ++e) {
    const ContestEntry& entry = result->entries[e];
    SCOPED_TRACE(entry.name);
    const ContestTrace& trace = entry.trace;
    ASSERT_FALSE(trace.steps.empty());
    EXPECT_LE(trace.steps.size(), 60U);
    EXPECT_TRUE(trace.is_finished || trace.steps.size() == 60U);
    EXPECT_EQ(trace.steps.front().config, space->sequential()->start());
    std::set<Config> distinct;
    double best = 0;
    for (const ContestStep& step : trace.steps) {
      EXPECT_TRUE(distinct.insert(step.config).second);
      best = std::max(best, step.speed);
      EXPECT_EQ(step.speed > 0, std::isfinite(step.time_ns));
    }
    EXPECT_EQ(trace.steps[trace.best].speed, best);
    EXPECT_EQ(entry.speed, best) << "the times of the final comparison are the same here";
    ASSERT_EQ(again.entries[e].trace.steps.size(), trace.steps.size());
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
      EXPECT_EQ(again.entries[e].trace.steps[i].config, trace.steps[i].config);
    }
  }
  EXPECT_EQ(result->entries[0].trace.steps.size(), 1U);  // base
}

// A config that two of them found takes part once.
TEST(RunContest, TheFinalComparisonIsOfAllTogether) {
  const NestBench bench = product("mm m=32 n=32 k=32");
  HashMeasurer measurer;
  std::vector<Contestant> twins = Contestant::parse_list("random,textbook").value();
  twins.push_back(twins.front());
  twins.back().name = "again";
  std::vector<std::string> announced;
  ContestOptions options = limited_to(40);
  options.tune.finalists = 4;
  options.on_search = [&](const Contestant& each) { announced.push_back(each.name); };
  const ContestResult result =
      run_contest(*bench.family, measurer, nullptr, bench.problem, twins, options, {}).value();
  EXPECT_THAT(announced, ElementsAre("random", "textbook", "again"));
  EXPECT_LE(measurer.compared(), 9U);
  EXPECT_EQ(result.entries[0].speed, result.entries[2].speed);
  EXPECT_EQ(result.entries[0].config_text, result.entries[2].config_text);
}

TEST(RunContest, SecondsEndItToo) {
  const NestBench bench = product("mm m=64 n=64 k=64");
  HashMeasurer measurer;
  double now = 0;
  CollectHooks hooks;
  hooks.now_s = [&now] { return now += 0.125; };
  ContestOptions options;
  options.tune.budget.seconds = 5;
  const ContestResult result = run_contest(*bench.family, measurer, nullptr, bench.problem,
                                           Contestant::parse_list("random").value(), options, hooks)
                                   .value();
  const ContestTrace& trace = result.entries.front().trace;
  EXPECT_FALSE(trace.is_finished);
  EXPECT_GT(trace.steps.size(), 10U);
  EXPECT_LE(trace.steps.back().elapsed_s, 5.5);
}

TEST(RunContest, RefusesWhatHasNoEndAndNoTime) {
  const NestBench bench = product("mm m=8 n=8 k=8");
  HashMeasurer measurer;
  const std::vector<Contestant> random = Contestant::parse_list("random").value();
  const auto run = [&](const ContestOptions& options) {
    return run_contest(*bench.family, measurer, nullptr, bench.problem, random, options, {})
        .error()
        .message;
  };
  EXPECT_THAT(run({}), HasSubstr("a search needs an end"));
  ContestOptions options = limited_to(10);
  options.tune.objective = Objective::parse("minimise code_bytes").value();
  EXPECT_THAT(run(options), HasSubstr("compared by the time"));
  EXPECT_EQ(measurer.calls(), 0U);
}

TEST(RunContest, RefusesAStrategyThatCannotWalkTheSpaceBeforeItMeasures) {
  const auto family = make_null({}).value();
  HashMeasurer measurer;
  const auto result =
      run_contest(*family, measurer, nullptr, Problem::parse("gemm m=64 n=64 k=64").value(),
                  Contestant::parse_list("random,guided").value(), limited_to(20), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(result.error().message,
              HasSubstr("'guided' walks spaces that are built step by step"));
  EXPECT_EQ(measurer.calls(), 0U);
}

// Any family will do: here the first default config is where searches start.
TEST(RunContest, SpacesThatAreNotBuiltStepByStepHaveNoWay) {
  const auto family = make_null({}).value();
  const Problem problem = Problem::parse("gemm m=64 n=64 k=64").value();
  HashMeasurer measurer;
  const auto result =
      run_contest(*family, measurer, nullptr, problem,
                  Contestant::parse_list("random,local").value(), limited_to(20), {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->entries[1].speed, 0);
  EXPECT_TRUE(result->entries[1].speeds_on_way.empty());
}

TEST(RunContest, FindsAndTimesRealSchedules) {
  if (best_cpu_isa() == CpuIsa::kGeneric) {
    GTEST_SKIP() << "loop nests are compiled for AVX2 and AVX-512";
  }
  const NestBench bench = product("mm m=48 n=64 k=32");
  const loop::Computation computation = loop::parse_computation("mm m=48 n=64 k=32").value();
  const auto measurer =
      make_local_measurer(bench.family, Protocol::brief(bench.family->info()), {.threads = 1});
  const auto result = run_contest(*bench.family, *measurer, nullptr, bench.problem,
                                  Contestant::parse_list("base,random,beam2bfs,guided").value(),
                                  limited_to(40), {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->start_speed, 0);
  EXPECT_EQ(result->entries[0].config_text, "the plain nest");
  EXPECT_EQ(result->entries[0].speeds_on_way.size(), 1U);
  for (const ContestEntry& entry : result->entries) {
    EXPECT_GT(entry.speed, 0) << entry.name;
    // The text is the schedule, and every action on the way was timed.
    const std::string text = entry.config_text == "the plain nest" ? "" : entry.config_text;
    const auto actions = loop::parse_schedule(computation, text);
    ASSERT_TRUE(actions) << actions.error().message;
    EXPECT_EQ(entry.speeds_on_way.size(), actions->size() + 1);
  }
  // Every search measures the start first, so that nothing it finds is much slower; a machine that
  // others use blurs the rest.
  EXPECT_GT(result->entries[3].speed, 0.5 * result->start_speed);
}

}  // namespace
}  // namespace foretune
