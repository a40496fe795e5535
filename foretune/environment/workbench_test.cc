#include "foretune/environment/workbench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace foretune::environment {
namespace {

using loop::Nest;
using loop::VectorUnit;
using testing::HasSubstr;

std::unique_ptr<Workbench> make(const loop::MatmulSizes& sizes) {
  return Workbench::create(*loop::matmul(sizes), VectorUnit::of(CpuIsa::kAvx2)).value();
}

class WorkbenchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (best_cpu_isa() < CpuIsa::kAvx2) {
      GTEST_SKIP() << "this CPU runs no AVX2";
    }
  }
};

TEST_F(WorkbenchTest, PreparesSchedulesThatComputeTheRightThing) {
  const auto bench = make({.m = 20, .n = 30, .k = 40});
  const auto run = bench->prepare(Nest::plain(bench->computation()));
  ASSERT_TRUE(run) << run.error().message;
  bench->output().data()[3] += 1;
  const Status spoilt = bench->verify();
  ASSERT_FALSE(spoilt);
  EXPECT_THAT(spoilt.error().message, HasSubstr("place 3 is"));
  (*run)();
  EXPECT_TRUE(bench->verify());
}

TEST_F(WorkbenchTest, ComparesASampleOfLargeProductsAndMissesNothingUnwritten) {
  const auto bench = make({.m = 400, .n = 400, .k = 200});
  const auto run = bench->prepare(Nest::plain(bench->computation()));
  ASSERT_TRUE(run) << run.error().message;
  bench->output().data()[7] = std::nanf("");
  EXPECT_FALSE(bench->verify());
}

TEST_F(WorkbenchTest, TheStopwatchCountsTheFastestWindow) {
  const auto bench = make({.m = 16, .n = 16, .k = 16});
  // Each look at the clock is 1 ms later than the last, but one window is shorter.
  int looks = 0;
  Stopwatch stopwatch(*bench, {.window_seconds = 1e-3, .windows = 3, .now_seconds = [&] {
                                 ++looks;
                                 return 1e-3 * looks - (looks >= 6 ? 0.75e-3 : 0);
                               }});
  const Evaluated evaluated = stopwatch.evaluate(Nest::plain(bench->computation()));
  ASSERT_TRUE(evaluated.ok) << evaluated.reason;
  EXPECT_EQ(looks, 8);
  EXPECT_NEAR(evaluated.seconds, 0.25e-3, 1e-9);
  EXPECT_NEAR(evaluated.gflops, 2 * 16 * 16 * 16 / 0.25e-3 / 1e9, 1e-6);
}

TEST_F(WorkbenchTest, TheStopwatchRefusesWhatCannotBeCompiled) {
  const auto bench = make({.m = 16, .n = 16, .k = 16});
  Nest nest = Nest::plain(bench->computation());
  nest.loops[0].mark = loop::Mark::kVector;
  const Evaluated evaluated = Stopwatch(*bench).evaluate(nest);
  EXPECT_FALSE(evaluated.ok);
  EXPECT_EQ(evaluated.gflops, 0);
  EXPECT_THAT(evaluated.reason, HasSubstr("along m"));
}

}  // namespace
}  // namespace foretune::environment
