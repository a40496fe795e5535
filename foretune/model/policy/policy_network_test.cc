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
