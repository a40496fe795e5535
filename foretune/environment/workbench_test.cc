#include "foretune/environment/workbench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/register_tiles.h"

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
  bench->poison();
  EXPECT_FALSE(bench->verify()) << "what does nothing would pass";
}

// The value of an input's element at a point, 0 outside of it.
float element(Workbench& bench, std::size_t input, const std::vector<std::int64_t>& point) {
  std::int64_t place = 0;
  return inside(bench.computation().inputs[input], point, &place) ? bench.input(input).data()[place]
                                                                  : 0.0F;
}

// At random places, one at a time: 1 more, one product less, never written.
void expect_errors_are_found(const loop::Computation& computation) {
  constexpr int kPlaces = 1000;
  const auto bench = Workbench::create(computation, VectorUnit::of(CpuIsa::kAvx2)).value();
  const auto run =
      bench->prepare(loop::textbook_nests(computation, VectorUnit::of(CpuIsa::kAvx2), 1).front());
  ASSERT_TRUE(run) << run.error().message;
  Rng rng(11);
  for (int i = 0; i < kPlaces; ++i) {
    float product = 0;
    std::int64_t place = 0;
    while (product == 0) {
      std::vector<std::int64_t> point;
      for (const loop::Var& var : computation.vars) {
        point.push_back(rng.between(0, var.extent - 1));
      }
      inside(computation.output, point, &place);
      product = element(*bench, 0, point) * element(*bench, 1, point);
    }
    float& value = bench->output().data()[place];
    const float right = value;
    for (const float wrong : {right + 1, right - product, std::nanf("")}) {
      value = wrong;
      const Status found = bench->verify();
      ASSERT_FALSE(found) << "place " << place << " is " << wrong << " instead of " << right;
      ASSERT_THAT(found.error().message, HasSubstr(concat("place ", place, " is")));
    }
    value = right;
  }
  EXPECT_TRUE(bench->verify());
}

TEST_F(WorkbenchTest, FindsAnyWrongElementOfALargeProduct) {
  expect_errors_are_found(*loop::matmul({.m = 512, .n = 512, .k = 512}));
}

TEST_F(WorkbenchTest, FindsAnyWrongElementOfALargeConvolution) {
  expect_errors_are_found(*loop::conv2d({.channels = 64,
                                         .out_channels = 64,
                                         .height = 56,
                                         .width = 56,
                                         .kernel_height = 3,
                                         .kernel_width = 3,
                                         .pad = 1}));
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
