#include "foretune/loop/loop_actions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop {
namespace {

Computation sample_product() { return matmul({.m = 96, .n = 130, .k = 64}).value(); }

// The mask by its definition.
std::vector<std::uint8_t> slow_mask(const Computation& computation, const LoopActions& actions,
                                    const Nest& nest, const Limits& limits) {
  std::vector<std::uint8_t> mask(LoopActions::kCount, 0);
  mask[LoopActions::kStop] = 1;
  for (std::size_t i = 0; i < LoopActions::kStop; ++i) {
    const auto action = actions.action(nest, i);
    // Moves by one level are swaps, and a factor of 0 belongs to a split by vectors.
    const bool is_twin =
        action &&
        ((action->kind == ActionKind::kMove && std::abs(action->loop - action->argument) <= 1) ||
         (action->kind == ActionKind::kSplit && action->argument == 0));
    if (action && !is_twin) {
      const auto next = loop::apply(computation, nest, *action, limits);
      mask[i] = next && *next != nest ? 1 : 0;
    }
  }
  return mask;
}

TEST(LoopActionsTest, MaskIsWhatApplyAccepts) {
  for_random_computations(1, 300, [](const Computation& computation, Rng& rng) {
    const Limits limits{.max_loops = 5 + rng.below(8)};
    const VectorUnit unit = VectorUnit::of(rng.below(2) == 0 ? CpuIsa::kAvx2 : CpuIsa::kAvx512);
    const LoopActions actions(computation, unit, limits);
    Nest nest = Nest::plain(computation);
    for (int step = 0; step < 14; ++step) {
      std::vector<std::uint8_t> mask(LoopActions::kCount, 7);
      actions.write_mask(nest, mask);
      ASSERT_EQ(mask, slow_mask(computation, actions, nest, limits))
          << computation.name << "\n"
          << tree_text(computation, nest);
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < LoopActions::kStop; ++i) {
        if (mask[i] != 0) {
          open.push_back(i);
        }
      }
      if (open.empty()) {
        break;
      }
      const std::size_t chosen = open[rng.below(open.size())];
      auto next = actions.apply(nest, chosen);
      ASSERT_TRUE(next) << actions.text(chosen) << ": " << next.error().message;
      nest = *std::move(next);
      ASSERT_TRUE(check(computation, nest));
    }
  });
}

TEST(LoopActionsTest, SplitsCountVectorsOfTheInstructionSet) {
  const Computation computation = sample_product();
  const Nest nest = Nest::plain(computation);
  for (const auto& [isa, lanes] : {std::pair(CpuIsa::kAvx2, 8), std::pair(CpuIsa::kAvx512, 16)}) {
    const LoopActions actions(computation, VectorUnit::of(isa));
    const auto two = actions.action(nest, LoopActions::kVectorSplit + 1);
    ASSERT_TRUE(two);
    EXPECT_EQ(*two, Action::split(0, 2 * lanes));
  }
}

TEST(LoopActionsTest, StoppingChangesNothingAndIsAlwaysLegal) {
  const Computation computation = sample_product();
  const LoopActions actions(computation, VectorUnit::of(CpuIsa::kAvx2));
  const Nest nest = Nest::plain(computation);
  std::vector<std::uint8_t> mask(LoopActions::kCount);
  actions.write_mask(nest, mask);
  EXPECT_EQ(mask[LoopActions::kStop], 1);
  const auto next = actions.apply(nest, LoopActions::kStop);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, nest);
  EXPECT_FALSE(actions.action(nest, LoopActions::kStop));
}

TEST(LoopActionsTest, ActionsBeyondTheLoopsAreRefusedWithAReason) {
  const Computation computation = sample_product();
  const LoopActions actions(computation, VectorUnit::of(CpuIsa::kAvx2));
  const auto next =
      actions.apply(Nest::plain(computation), 7 * LoopActions::kOperations + LoopActions::kSwap);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(next.error().message.find("3 loops"), std::string::npos) << next.error().message;
}

TEST(LoopActionsTest, TextsDiffer) {
  const Computation computation = sample_product();
  const LoopActions actions(computation, VectorUnit::of(CpuIsa::kAvx512));
  std::set<std::string> texts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < LoopActions::kCount; ++i) {
    const std::string text = actions.text(i);
    if (text.ends_with(" by 0")) {
      continue;
    }
    texts.insert(text);
    ++count;
  }
  EXPECT_EQ(texts.size(), count);
  EXPECT_TRUE(texts.contains("stop"));
  EXPECT_TRUE(texts.contains("split 0 by 64"));
  EXPECT_TRUE(texts.contains("pack second 3"));
}

}  // namespace
}  // namespace foretune::loop
