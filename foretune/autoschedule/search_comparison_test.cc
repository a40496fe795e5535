#include "foretune/autoschedule/search_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "foretune/environment/cursor_space.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation_text.h"

namespace foretune::autoschedule {
namespace {

TEST(SearchComparison, FindsAndTimesRealSchedules) {
  if (best_cpu_isa() == CpuIsa::kGeneric) {
    GTEST_SKIP() << "loop nests are compiled for AVX2 and AVX-512";
  }
  const loop::VectorUnit unit = loop::VectorUnit::of(best_cpu_isa());
  const loop::Computation computation = loop::parse_computation("mm m=48 n=64 k=32").value();
  const auto workbench = environment::Workbench::create(computation, unit).value();
  const auto space = environment::cursor_space(computation, environment::ActionSet());
  std::vector<SearchMethod> methods;
  std::vector<std::string> announced;
  for (const char* name : {"base", "random", "beam2bfs", "guided"}) {
    methods.push_back(SearchMethod::parse(name).value());
  }
  ComparisonOptions options{.budget = {.measurements = 40}, .setup = {.unit = unit}};
  options.final.window_s = 1e-4;
  options.on_search = [&](const SearchMethod& method) { announced.push_back(method.name); };
  const auto result = compare_searches("small", *workbench, *space, methods, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(announced, testing::ElementsAre("base", "random", "beam2bfs", "guided"));
  EXPECT_EQ(result->benchmark, "small");
  EXPECT_EQ(result->computation, computation.name);
  EXPECT_GT(result->base_gflops, 0);
  ASSERT_EQ(result->methods.size(), 4U);
  EXPECT_EQ(result->methods[0].schedule, "");
  EXPECT_EQ(result->methods[0].gflops_after.size(), 1U);
  for (const MethodResult& method : result->methods) {
    EXPECT_GT(method.gflops, 0) << method.method;
    EXPECT_LE(method.trace.steps.size(), 40U);
    // The text is the schedule.
    const auto actions = loop::parse_schedule(computation, method.schedule);
    ASSERT_TRUE(actions);
    EXPECT_EQ(method.gflops_after.size(), actions->size() + 1);
    EXPECT_EQ(space->config({.nest = loop::apply_all(computation, *actions).value(), .cursor = 0}),
              method.trace.steps[method.trace.best].config);
  }
  // Every search measures the start first, so that nothing it finds is much slower; a machine that
  // others use blurs the rest.
  EXPECT_GT(result->methods[3].gflops, 0.5 * result->base_gflops);
}

}  // namespace
}  // namespace foretune::autoschedule
