#include "foretune/loop/machine/jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/testing/forked_child.h"
#include "foretune/kernels/testing/guarded_buffer.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kJitSeed = 20261122;
#ifdef FORETUNE_SANITIZED
constexpr int kSchedules = 1500;
#else
constexpr int kSchedules = 10000;
#endif
constexpr std::size_t kActions = 12;

std::vector<CpuIsa> instruction_sets() {
  std::vector<CpuIsa> sets;
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= best_cpu_isa()) {
      sets.push_back(isa);
    }
  }
  return sets;
}

class JitTest : public testing::TestWithParam<CpuIsa> {
 protected:
  Jit jit_{VectorUnit::of(GetParam())};
};

// Operands that end, or begin, where memory does.
struct JitOperands {
  JitOperands(const Computation& computation, Rng& rng, GuardSide side)
      : output(static_cast<std::size_t>(computation.output.elements()), side) {
    std::fill(output.view().begin(), output.view().end(), 1e30F);
    for (const std::vector<float>& values : whole_inputs(computation, rng)) {
      inputs.push_back(std::make_unique<GuardedBuffer>(values.size(), side));
      std::copy(values.begin(), values.end(), inputs.back()->view().begin());
      views.push_back(inputs.back()->view());
    }
  }

  std::vector<std::unique_ptr<GuardedBuffer>> inputs;
  Inputs views;
  GuardedBuffer output;
};

std::string result_of(const Kernel& kernel, const Computation& computation, JitOperands& operands,
                      ThreadPool* pool = nullptr) {
  Result<Kernel::Workspace> workspace =
      kernel.make_workspace(pool == nullptr ? 1 : pool->threads());
  if (!workspace) {
    return workspace.error().message;
  }
  kernel.run(operands.views, operands.output.view(), *workspace, pool);
  return difference(computation, reference(computation, operands.views), operands.output.view());
}

TEST_P(JitTest, RandomSchedulesComputeWhatTheInterpreterDoes) {
  int refused = 0;
  for (int i = 0; i < kSchedules; ++i) {
    Rng rng(kJitSeed + static_cast<std::uint64_t>(i));
    const Computation computation = random_computation(rng);
    const Nest nest = random_nest(computation, rng, kActions);
    JitOperands operands(computation, rng, i % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart);
    const Result<Kernel> kernel = compile_what_fits(jit_, computation, nest);
    if (!kernel) {
      EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported) << kernel.error().message;
      ++refused;
      continue;
    }
    ASSERT_EQ(result_of(*kernel, computation, operands), "")
        << "seed " << kJitSeed << " + " << i << ": " << computation.name << "\n"
        << tree_text(computation, nest);
  }
  EXPECT_LT(refused, kSchedules / 50);
}

TEST_P(JitTest, ThreadsShareTheRoundsOfAParallelLoop) {
  ThreadPool pool(3);
  int parallel = 0;
  for (int i = 0; i < kSchedules / 10; ++i) {
    Rng rng(kJitSeed + 1000000 + static_cast<std::uint64_t>(i));
    const Computation computation = random_computation(rng);
    Nest nest = random_nest(computation, rng, kActions);
    if (const Result<Nest> shared = apply(computation, nest, Action::parallelize(0))) {
      nest = *shared;
    }
    const Result<Kernel> kernel = compile_what_fits(jit_, computation, nest);
    if (!kernel || nest.loops[0].mark != Mark::kParallel) {
      continue;
    }
    ++parallel;
    JitOperands operands(computation, rng, GuardSide::kEnd);
    ASSERT_EQ(result_of(*kernel, computation, operands, &pool), "")
        << "seed " << kJitSeed << " + " << i << ": " << computation.name << "\n"
        << tree_text(computation, nest);
  }
  EXPECT_GT(parallel, kSchedules / 40);
}

TEST_P(JitTest, NoPageIsWritableAndExecutable) {
  const Computation computation = *matmul({.m = 24, .n = 32, .k = 16});
  const Result<Kernel> kernel = jit_.compile(computation, Nest::plain(computation));
  ASSERT_TRUE(kernel) << kernel.error().message;
  const auto code = reinterpret_cast<std::uintptr_t>(kernel->code());
  bool found = false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t space = line.find(' ');
    const std::string rights = line.substr(space + 1, 4);
    EXPECT_FALSE(rights[1] == 'w' && rights[2] == 'x') << line;
    const std::size_t dash = line.find('-');
    if (code >= std::stoull(line.substr(0, dash), nullptr, 16) &&
        code < std::stoull(line.substr(dash + 1, space - dash - 1), nullptr, 16)) {
      found = true;
      EXPECT_EQ(rights.substr(0, 3), "r-x") << line;
    }
  }
  EXPECT_TRUE(found);
}

Result<Kernel> compile(const Jit& jit, const Computation& computation, const char* schedule) {
  FORETUNE_TRY(const std::vector<Action> actions, parse_schedule(computation, schedule));
  FORETUNE_TRY(const Nest nest, apply_all(computation, actions));
  return jit.compile(computation, nest);
}

TEST_P(JitTest, RefusesLanesAlongAGap) {
  const Computation computation = *matmul({.m = 24, .n = 32, .k = 16});
  const Result<Kernel> kernel = compile(jit_, computation, "vectorize m0");
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("moves by 32 elements along m"));
}

TEST_P(JitTest, RefusesABlockOfMoreRegistersThanThereAre) {
  const Computation computation = *matmul({.m = 48, .n = 64, .k = 16});
  const Result<Kernel> kernel = compile(jit_, computation, "vectorize n0, block m0");
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("in registers"));
}

TEST_P(JitTest, RefusesMoreCodeThanMakesSense) {
  const Computation computation = *matmul({.m = 64, .n = 3, .k = 3, .batch = 64});
  const Result<Kernel> kernel =
      compile(jit_, computation, "unroll b0, unroll m0, unroll n0, unroll k0, block n0");
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("too much code"));
}

TEST_P(JitTest, KernelsOutliveTheirJitAndCompileOnManyThreads) {
  const Computation computation = *matmul({.m = 19, .n = 23, .k = 29});
  std::vector<std::optional<Kernel>> kernels(8);
  {
    const Jit jit(VectorUnit::of(GetParam()));
    std::vector<std::thread> threads;
    threads.reserve(kernels.size());
    for (std::optional<Kernel>& kernel : kernels) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          Result<Kernel> made = jit.compile(computation, Nest::plain(computation));
          if (made) {
            kernel.emplace(*std::move(made));
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Rng rng(kJitSeed);
  for (const std::optional<Kernel>& kernel : kernels) {
    ASSERT_TRUE(kernel.has_value());
    JitOperands operands(computation, rng, GuardSide::kEnd);
    EXPECT_EQ(result_of(*kernel, computation, operands), "");
  }
}

// Code lies in memory that parent and child share, so neither may write where the other's is.
TEST_P(JitTest, AForkedChildCompilesIntoMemoryOfItsOwn) {
  Rng rng(kJitSeed);
  const Computation before = *matmul({.m = 5, .n = 16, .k = 7});
  const Computation of_child = *matmul({.m = 6, .n = 20, .k = 9, .epilogue = {.relu = true}});
  const Computation of_parent = *reduction(11, 40, Op::kMax, true);
  const auto compile_plain = [&](const Computation& computation) {
    return jit_.compile(computation, Nest::plain(computation)).value();
  };
  const auto is_right = [&](const Kernel& kernel, const Computation& computation) {
    JitOperands operands(computation, rng, GuardSide::kEnd);
    return result_of(kernel, computation, operands).empty();
  };
  const Kernel old = compile_plain(before);
  std::array<int, 2> to_child{};
  std::array<int, 2> to_parent{};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(to_parent.data()), 0);
  char byte = 0;
  std::optional<Kernel> later;
  std::thread parent([&] {
    ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
    later.emplace(compile_plain(of_parent));
    ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  });
  EXPECT_TRUE(testing_support::is_true_in_child([&] {
    auto own = std::make_optional(compile_plain(of_child));
    char here = 0;
    const bool was_signalled =
        ::write(to_parent[1], &here, 1) == 1 && ::read(to_child[0], &here, 1) == 1;
    const bool all_right = is_right(*own, of_child) && is_right(old, before);
    own.reset();
    return was_signalled && all_right;
  }));
  parent.join();
  EXPECT_TRUE(is_right(*later, of_parent));
  EXPECT_TRUE(is_right(old, before));
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, JitTest, testing::ValuesIn(instruction_sets()),
                         [](const auto& set) { return std::string(to_string(set.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(JitTest);

}  // namespace
}  // namespace foretune::loop
