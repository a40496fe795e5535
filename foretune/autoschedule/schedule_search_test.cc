#include "foretune/autoschedule/schedule_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "foretune/base/text.h"
#include "foretune/environment/cursor_space.h"
#include "foretune/loop/computation_text.h"

namespace foretune::autoschedule {
namespace {

using environment::ActionSet;
using environment::Evaluated;
using environment::Evaluator;
using ::testing::HasSubstr;

// Faster the more loops there are; four loops are refused.
class LoopCounter final : public Evaluator {
 public:
  Evaluated evaluate(const loop::Nest& nest) override {
    ++calls;
    const auto loops = static_cast<double>(nest.loops.size());
    if (nest.loops.size() == 4) {
      return {.reason = "four"};
    }
    return {.ok = true, .seconds = 1e-6 / loops, .gflops = loops};
  }
  int calls = 0;
};

std::unique_ptr<ScheduleSpace> space() {
  return environment::cursor_space(loop::parse_computation("mm m=64 n=64 k=64").value(),
                                   ActionSet());
}

SearchSetup setup() { return {.unit = loop::VectorUnit::of(CpuIsa::kAvx2)}; }

SearchTrace search(std::string_view name, const SearchBudget& budget, std::uint64_t seed = 1) {
  LoopCounter evaluator;
  const auto trace =
      run_search(*space(), SearchMethod::parse(name).value(), evaluator, budget, seed, setup());
  EXPECT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->steps.size(), static_cast<std::size_t>(evaluator.calls));
  return *trace;
}

TEST(SearchMethod, NamesCarryTheirNumbers) {
  const SearchMethod beam = SearchMethod::parse("beam12bfs").value();
  EXPECT_EQ(beam.strategy, "beam-bfs");
  EXPECT_EQ(beam.width, 12U);
  EXPECT_EQ(SearchMethod::parse("beam2dfs")->strategy, "beam-dfs");
  EXPECT_EQ(SearchMethod::parse("greedy3")->lookahead, 3U);
  EXPECT_EQ(SearchMethod::parse("bruteforce")->strategy, "exhaustive");
  for (const std::string& name : SearchMethod::usual()) {
    EXPECT_EQ(SearchMethod::parse(name)->name, name);
  }
  for (const char* name : {"", "beam", "beambfs", "beam0bfs", "beam-1dfs", "greedy", "greedyx",
                           "greedy99999999999999999999", "magic"}) {
    EXPECT_THAT(SearchMethod::parse(name).error().message, HasSubstr("there are base")) << name;
  }
}

TEST(RunSearch, EveryMethodKeepsToItsBudgetAndRepeats) {
  for (const std::string& name : SearchMethod::usual()) {
    SCOPED_TRACE(name);
    const SearchTrace trace = search(name, {.measurements = 60});
    ASSERT_FALSE(trace.steps.empty());
    EXPECT_LE(trace.steps.size(), 60U);
    EXPECT_TRUE(trace.is_finished || trace.steps.size() == 60U);
    EXPECT_EQ(trace.steps.front().config, space()->start());
    std::set<Config> distinct;
    double best = 0;
    for (const SearchStep& step : trace.steps) {
      EXPECT_TRUE(distinct.insert(step.config).second);
      best = std::max(best, step.gflops);
      // Refused ones are worth nothing.
      EXPECT_EQ(step.gflops > 0, std::isfinite(step.seconds));
    }
    EXPECT_EQ(trace.steps[trace.best].gflops, best);
    const SearchTrace again = search(name, {.measurements = 60});
    ASSERT_EQ(again.steps.size(), trace.steps.size());
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
      EXPECT_EQ(again.steps[i].config, trace.steps[i].config);
    }
  }
}

TEST(RunSearch, BaseAndTextbookMeasureTheirLists) {
  EXPECT_EQ(search("base", {.measurements = 60}).steps.size(), 1U);
  EXPECT_GT(search("recipe", {.measurements = 60}).steps.size(), 4U);
  LoopCounter evaluator;
  const auto trace = run_search(*space(), SearchMethod::parse("textbook").value(), evaluator,
                                {.measurements = 10}, 1, setup());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->steps.size(), 10U);
}

TEST(RunSearch, SecondsEndItToo) {
  LoopCounter evaluator;
  double now = 0;
  SearchSetup slow = setup();
  slow.now_seconds = [&now] { return now += 0.125; };
  const auto trace = run_search(*space(), SearchMethod::parse("random").value(), evaluator,
                                {.seconds = 5}, 1, slow);
  ASSERT_TRUE(trace);
  EXPECT_FALSE(trace->is_finished);
  EXPECT_GT(trace->steps.size(), 10U);
  EXPECT_LE(trace->steps.back().elapsed_s, 5.25);
  EXPECT_THAT(run_search(*space(), SearchMethod::parse("random").value(), evaluator, {}, 1, slow)
                  .error()
                  .message,
              HasSubstr("a search needs an end"));
}

TEST(SearchTrace, TellsWhenASpeedWasReached) {
  const SearchTrace trace = search("bruteforce", {.measurements = 200});
  EXPECT_EQ(trace.measurements_to(3), 1U);
  EXPECT_GT(trace.measurements_to(5), 1U);
  EXPECT_EQ(trace.measurements_to(100), 0U);
}

}  // namespace
}  // namespace foretune::autoschedule
