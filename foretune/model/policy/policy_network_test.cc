#include "foretune/model/policy/policy_network.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune {
namespace {

using loop::LoopActions;
using loop::PolicyObserver;

PolicyNetwork random_network(std::uint32_t width, std::uint64_t seed) {
  PolicyNetwork network = PolicyNetwork::of_width(width);
  Rng rng(seed);
  for (DenseLayer* const layer : network.layers()) {
    for (std::vector<float>* const values : {&layer->weights, &layer->bias}) {
      for (float& value : *values) {
        value = static_cast<float>(rng.uniform() - 0.5);
      }
    }
  }
  return network;
}

struct Seen {
  std::vector<float> loops =
      std::vector<float>(LoopActions::kLevels * PolicyObserver::kLoopColumns);
  std::vector<float> whole = std::vector<float>(PolicyObserver::kWholeColumns);
};

TEST(PolicyNetworkTest, WhatNeverChangedCountsWhateverItBecomes) {
  PolicyNetwork network = random_network(16, 5);
  Rng rng(4);
  Seen seen;
  for (std::vector<float>* const values : {&seen.loops, &seen.whole}) {
    for (float& value : *values) {
      value = static_cast<float>(rng.uniform());
    }
  }
  constexpr std::size_t kLoopColumn = 7;
  constexpr std::size_t kWholeColumn = 3;
  std::vector<InputRange> loops(PolicyObserver::kLoopColumns, {0, 1});
  std::vector<InputRange> whole(PolicyObserver::kWholeColumns, {0, 1});
  loops[kLoopColumn] = {0.5F, 0.5F};
  whole[kWholeColumn] = {0.25F, 0.25F};
  Seen elsewhere = seen;
  for (std::size_t level = 0; level < LoopActions::kLevels; ++level) {
    seen.loops[level * PolicyObserver::kLoopColumns + kLoopColumn] = 0.5F;
    elsewhere.loops[level * PolicyObserver::kLoopColumns + kLoopColumn] = 9;
  }
  seen.whole[kWholeColumn] = 0.25F;
  elsewhere.whole[kWholeColumn] = -3;
  const PolicyScores wanted = policy_reference(network, seen.loops, seen.whole, 3);
  fix_constants(network, loops, whole);
  const PolicyScores fixed = policy_reference(network, elsewhere.loops, elsewhere.whole, 3);
  EXPECT_NEAR(fixed.value, wanted.value, 1e-4);
  for (std::size_t i = 0; i < wanted.actions.size(); ++i) {
    EXPECT_NEAR(fixed.actions[i], wanted.actions[i], 1e-4);
  }
}

TEST(PolicyNetworkTest, AnOperationThatIsNeverChosenLeavesTheOthersAlone) {
  PolicyNetwork network = random_network(16, 5);
  const Seen seen;
  const PolicyScores before = policy_reference(network, seen.loops, seen.whole, 2);
  never_choose(network, LoopActions::kSwap);
  const PolicyScores after = policy_reference(network, seen.loops, seen.whole, 2);
  for (std::size_t i = 0; i < before.actions.size(); ++i) {
    const bool is_it =
        i == LoopActions::kSwap || i == LoopActions::kOperations + LoopActions::kSwap;
    EXPECT_EQ(after.actions[i], is_it ? -1e4F : before.actions[i]) << i;
  }
}

TEST(PolicyNetworkTest, EveryInstructionSetGivesTheBitsOfTheReference) {
  Rng rng(3);
  for (const std::uint32_t width : {1U, 13U, 64U}) {
    const PolicyNetwork network = random_network(width, width);
    ASSERT_TRUE(network.validate());
    for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      if (isa > best_cpu_isa()) {
        continue;
      }
      PolicyEvaluator evaluator(network, isa);
      for (std::size_t count = 1; count <= LoopActions::kLevels; ++count) {
        Seen seen;
        for (std::vector<float>* const values : {&seen.loops, &seen.whole}) {
          for (float& value : *values) {
            value = static_cast<float>(rng.uniform());
          }
        }
        const PolicyScores wanted = policy_reference(network, seen.loops, seen.whole, count);
        std::vector<float> scores(LoopActions::kCount, 9.0F);
        const float value = evaluator.score(seen.loops, seen.whole, count, scores);
        EXPECT_EQ(scores, wanted.actions) << to_string(isa) << " " << width << " " << count;
        EXPECT_EQ(value, wanted.value);
      }
    }
  }
}

TEST(PolicyNetworkTest, BytesGiveTheSameNetworkAndTruncatedOnesNone) {
  const PolicyNetwork network = random_network(24, 5);
  ByteWriter writer;
  put_policy_network(writer, network);
  ByteReader reader(writer.bytes());
  const auto read = get_policy_network(reader);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, network);
  for (std::size_t size = 0; size < writer.size(); size += 997) {
    ByteReader shorter(writer.bytes().subspan(0, size));
    EXPECT_FALSE(get_policy_network(shorter)) << size;
  }
}

TEST(PolicyNetworkTest, LayersThatDoNotFitAreRefused) {
  PolicyNetwork network = random_network(8, 1);
  network.mix.inputs = 8;
  EXPECT_FALSE(network.validate());
  PolicyNetwork infinite = random_network(8, 1);
  infinite.out.bias[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(infinite.validate());
}

}  // namespace
}  // namespace foretune
