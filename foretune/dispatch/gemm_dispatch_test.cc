#include "foretune/dispatch/gemm_dispatch.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/families/cpu_gemm/cpu_gemm_space.h"
#include "foretune/families/cpu_gemm/gemm_data.h"

namespace foretune {
namespace {

GemmProblem random_problem(Rng& rng) {
  GemmSizes sizes{.m = rng.between(1, 90), .n = rng.between(1, 90), .k = rng.between(1, 90)};
  sizes.dtype =
      std::vector{DataType::kF32, DataType::kF32, DataType::kBf16, DataType::kI8}[rng.below(4)];
  sizes.layout = static_cast<GemmLayout>(rng.below(4));
  sizes.operation = static_cast<GemmOperation>(rng.below(4));
  if (sizes.operation == GemmOperation::kBmm) {
    sizes.batch = rng.between(2, 6);
  }
  if (sizes.operation == GemmOperation::kAddmmRelu && sizes.dtype == DataType::kI8) {
    sizes.operation = GemmOperation::kAddmm;
  }
  const auto problem = GemmProblem::create(sizes);
  EXPECT_TRUE(problem);
  return *problem;
}

Status run(GemmDispatcher& dispatcher, GemmData& data) {
  switch (data.problem().dtype()) {
    case DataType::kBf16:
      return dispatcher.run(data.problem(), data.bf16_operands());
    case DataType::kI8:
      return dispatcher.run(data.problem(), data.i8_operands());
    default:
      return dispatcher.run(data.problem(), data.operands());
  }
}

void run_random_problems(GemmDispatcher& dispatcher, std::uint64_t seed, int count, int repeats) {
  Rng rng(seed);
  for (int i = 0; i < count; ++i) {
    const GemmProblem problem = random_problem(rng);
    const auto data = GemmData::create(problem, rng.next());
    ASSERT_TRUE(data);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      (*data)->poison();
      const Status status = run(dispatcher, **data);
      ASSERT_TRUE(status) << problem.to_problem().text() << ": " << status.error().message;
      const Support right = (*data)->verify();
      ASSERT_TRUE(right) << problem.to_problem().text() << ": " << right.reason();
    }
  }
}

TEST(GemmDispatchTest, RandomProblemsOfAllTypesAreRight) {
  for (const int threads : {1, 0}) {
    const auto dispatcher = GemmDispatcher::for_this_cpu({.threads = threads});
    ASSERT_TRUE(dispatcher) << dispatcher.error().message;
    run_random_problems(**dispatcher, 31, 150, 1);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(GemmDispatchTest, EveryTrialIsAWholeProduct) {
  const auto dispatcher = GemmDispatcher::for_this_cpu(
      {.dispatch = {.measure_top = 6, .measure_rounds = 2, .measure_seconds = 10}});
  ASSERT_TRUE(dispatcher);
  run_random_problems(**dispatcher, 32, 15, 14);
}

TEST(GemmDispatchTest, ThreadsMayMultiplyAtOnce) {
  const auto dispatcher = GemmDispatcher::for_this_cpu({.dispatch = {.measure_top = 3}});
  ASSERT_TRUE(dispatcher);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    // Two and two work on the same problems.
    threads.emplace_back([&, thread] {
      run_random_problems(**dispatcher, std::uint64_t{40} + static_cast<std::uint64_t>(thread) / 2,
                          30, 3);
    });
  }
}

TEST(GemmDispatchTest, AKernelMayBeKeptAndRefusesOtherTypes) {
  auto dispatcher = GemmDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(dispatcher);
  const auto problem = GemmProblem::create({.m = 30, .n = 40, .k = 50});
  ASSERT_TRUE(problem);
  const auto kernel = (*dispatcher)->kernel(*problem);
  ASSERT_TRUE(kernel);
  dispatcher->reset();  // the kernel needs it no longer
  const auto data = GemmData::create(*problem, 1);
  ASSERT_TRUE(data);
  EXPECT_TRUE((*kernel)->run((*data)->operands()));
  EXPECT_TRUE((*data)->verify());
  const Status refused = (*kernel)->run(Bf16GemmOperands{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the kernel multiplies f32, the operands are bf16");
}

TEST(GemmDispatchTest, RefusesMoreThreadsThanCores) {
  EXPECT_FALSE(GemmDispatcher::for_this_cpu({.threads = 100000}));
}

}  // namespace
}  // namespace foretune
