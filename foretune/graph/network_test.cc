#include "foretune/graph/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/network_file.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/simplify.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NetworkBuilder, InfersShapes) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 3, 9, 7});
  const TensorId w = builder.constant("w", {4, 3, 3, 3}, std::vector<float>(108, 1.0F));
  const TensorId y = builder.add("conv", "", {x, w}, {.integers = {2, 1, 1, 1, 1, 1, 1, 1, 1}});
  EXPECT_THAT(builder.shape(y), ElementsAre(1, 4, 5, 7));
  const TensorId z =
      builder.add("max_pool", "", {y}, {.integers = {2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 0}});
  EXPECT_THAT(builder.shape(z), ElementsAre(1, 4, 3, 4));
  const TensorId flat = builder.add("reshape", "", {z}, {.integers = {1, 48}});
  const Result<Network> network = builder.finish({flat});
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(network->multiply_adds(), 4 * 5 * 7 * 27);
  EXPECT_EQ(network->weight_bytes(), 108 * 4);
}

TEST(NetworkBuilder, KeepsTheFirstError) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 3, 9, 7});
  const TensorId w = builder.constant("w", {4, 2, 3, 3}, std::vector<float>(72, 1.0F));
  builder.add("conv", "first", {x, w}, {.integers = {1, 1, 0, 0, 0, 0, 1, 1, 1}});
  builder.add("nonsense", "", {x});
  const Result<Network> network = builder.finish({x});
  ASSERT_FALSE(network);
  EXPECT_THAT(network.error().message, HasSubstr("first: weights 4x2x3x3 in 1 groups"));
}

TEST(NetworkBuilder, RefusesWhatMakesNoSense) {
  const auto refusal = [](const auto& add) {
    NetworkBuilder builder("n");
    const TensorId x = builder.input("x", {2, 4, 6});
    const TensorId c = builder.constant("c", {4, 6}, std::vector<float>(24, 1.0F));
    const TensorId y = add(builder, x, c);
    const Result<Network> network = builder.finish({y});
    return network ? std::string() : network.error().message;
  };
  EXPECT_THAT(refusal([](NetworkBuilder& b, TensorId x, TensorId) {
                return b.add("transpose", "", {x}, {.integers = {1, 0, 2}});
              }),
              HasSubstr("leaves the first dimension"));
  EXPECT_THAT(refusal([](NetworkBuilder& b, TensorId x, TensorId) {
                return b.add("softmax", "", {x}, {.integers = {0}});
              }),
              HasSubstr("dimension 0"));
  EXPECT_THAT(
      refusal([](NetworkBuilder& b, TensorId, TensorId c) { return b.add("add", "", {c, c}); }),
      HasSubstr("all operands are constant"));
  EXPECT_THAT(refusal([](NetworkBuilder& b, TensorId x, TensorId) {
                return b.add("reshape", "", {x}, {.integers = {2, 25}});
              }),
              HasSubstr("cannot become 2x25"));
  EXPECT_THAT(refusal([](NetworkBuilder& b, TensorId x, TensorId c) {
                return b.add("concat", "", {x, c}, {.integers = {1}});
              }),
              HasSubstr("does not fit beside"));
  EXPECT_THAT(
      refusal([](NetworkBuilder& b, TensorId x, TensorId) { return b.add("relu", "", {x, x}); }),
      HasSubstr("does not take 2 operands"));
  EXPECT_THAT(refusal([](NetworkBuilder& b, TensorId x, TensorId) {
                return b.add("clip", "", {x}, {.numbers = {0}});
              }),
              HasSubstr("other attributes"));
  EXPECT_THAT(refusal([](NetworkBuilder&, TensorId x, TensorId) { return x; }),
              HasSubstr("not computed"));
}

// The file of a network has room for no longer ones.
TEST(NetworkBuilder, LimitsNames) {
  const auto accepts = [](std::size_t network, std::size_t input, std::size_t node, int nodes) {
    NetworkBuilder builder(std::string(network, 'n'));
    TensorId x = builder.input(std::string(input, 'i'), {1, 4});
    for (int i = 0; i < nodes; ++i) {
      x = builder.add("relu", std::string(node, 'o'), {x});
    }
    return builder.finish({x}).has_value();
  };
  EXPECT_TRUE(accepts(kMaxName, kMaxName, kMaxName, 1));
  EXPECT_FALSE(accepts(kMaxName + 1, 1, 1, 1));
  EXPECT_FALSE(accepts(1, kMaxName + 1, 1, 1));
  EXPECT_FALSE(accepts(1, 1, kMaxName + 1, 1));
  EXPECT_FALSE(accepts(1, 1, kMaxName, 2));  // the second one gets a number
}

TEST(NetworkBuilder, RefusesReshapesThatOverflow) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 4});
  const std::int64_t large = std::int64_t{1} << 31U;
  EXPECT_EQ(builder.add("reshape", "", {x}, {.integers = {large, large, large, 4}}), kNoTensor);
}

TEST(Ops, HaveRowsWithRulesAndFunctions) {
  for (const OpInfo* const op : all_ops()) {
    EXPECT_NE(op->shape, nullptr) << op->name;
    EXPECT_NE(op->compute, nullptr) << op->name;
    EXPECT_EQ(find_op(op->name), op);
  }
  EXPECT_EQ(find_op("none"), nullptr);
}

TEST(Reference, ComputesAConvolution) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 1, 3, 3});
  const TensorId w = builder.constant("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  const TensorId b = builder.constant("b", {1}, {0.5F});
  const TensorId y = builder.add("conv", "", {x, w, b}, {.integers = {1, 1, 1, 0, 0, 0, 1, 1, 1}});
  const Result<Network> network = builder.finish({y});
  ASSERT_TRUE(network) << network.error().message;
  const std::vector<float> image{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto outputs = run_reference(*network, {&image, 1}, 1);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT((*outputs)[0], ElementsAre(11.5, 18.5, 37.5, 47.5, 67.5, 77.5));
}

TEST(Reference, RepeatsConstantsForEachImage) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {2, 2});
  const TensorId c = builder.constant("c", {2, 2}, {10, 20, 30, 40});
  const Result<Network> network = builder.finish({builder.add("add", "", {x, c})});
  ASSERT_TRUE(network) << network.error().message;
  const std::vector<float> two{1, 2, 3, 4, 5, 6, 7, 8};
  const auto outputs = run_reference(*network, {&two, 1}, 2);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT((*outputs)[0], ElementsAre(11, 22, 33, 44, 15, 26, 37, 48));
  EXPECT_FALSE(run_reference(*network, {&two, 1}, 3));
}

// Calls `check` with random networks and an input for two images.
template <class Check>
void for_random_networks(int count, std::uint64_t seed, const Check& check) {
  Rng rng(seed);
  for (int i = 0; i < count; ++i) {
    const Result<Network> network = testing::random_network(rng, 14);
    ASSERT_TRUE(network) << network.error().message << " in network " << i;
    const Shape& shape = network->tensor(network->inputs()[0]).shape;
    const std::vector<float> image =
        testing::random_values(static_cast<std::size_t>(2 * element_count(shape)), rng);
    SCOPED_TRACE(i);
    check(*network, image);
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

TEST(NetworkFile, KeepsAllOfANetwork) {
  for_random_networks(60, 1, [](const Network& network, const std::vector<float>& image) {
    const std::vector<std::byte> bytes = network_bytes(network);
    const Result<Network> read = parse_network(bytes);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(network_bytes(*read), bytes);
    EXPECT_EQ(*run_reference(*read, {&image, 1}, 2), *run_reference(network, {&image, 1}, 2));
  });
}

TEST(NetworkFile, RefusesEveryDamage) {
  Rng rng(5);
  const Result<Network> network = testing::random_network(rng, 10);
  ASSERT_TRUE(network) << network.error().message;
  const std::vector<std::byte> bytes = network_bytes(*network);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(parse_network(damaged)) << i;
    EXPECT_FALSE(parse_network(std::span(bytes).first(i))) << i;
  }
}

TEST(Simplify, KeepsResults) {
  for_random_networks(120, 2, [](const Network& network, const std::vector<float>& image) {
    const Result<Network> simple = simplify(network);
    ASSERT_TRUE(simple) << simple.error().message;
    EXPECT_LE(simple->nodes().size(), network.nodes().size());
    const auto wanted = *run_reference(network, {&image, 1}, 2);
    const auto found = *run_reference(*simple, {&image, 1}, 2);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t output = 0; output < wanted.size(); ++output) {
      testing::expect_close(found[output], wanted[output], 1e-4);
    }
  });
}

TEST(Simplify, FoldsScalesIntoWeights) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 2, 5, 5});
  const TensorId w = builder.constant("w", {3, 2, 3, 3}, std::vector<float>(54, 0.5F));
  const TensorId padded =
      builder.add("pad", "", {x}, {.integers = {0, 0, 1, 1, 0, 0, 1, 0}, .numbers = {0}});
  const TensorId y =
      builder.add("conv", "", {padded, w}, {.integers = {1, 1, 0, 0, 0, 0, 1, 1, 1}});
  const TensorId scale = builder.constant("s", {3}, {1, 2, 3});
  const TensorId shift = builder.constant("t", {3}, {4, 5, 6});
  const TensorId z = builder.add("affine", "", {y, scale, shift});
  const TensorId kept = builder.add("relu", "", {z});
  builder.add("tanh", "unread", {z});
  const Result<Network> network = builder.finish({kept});
  ASSERT_TRUE(network) << network.error().message;
  const Result<Network> simple = simplify(*network);
  ASSERT_TRUE(simple) << simple.error().message;
  // The other reader is not needed, but it is there when the first pass looks.
  ASSERT_EQ(simple->nodes().size(), 2U);
  EXPECT_EQ(simple->nodes()[0].op->name, "conv");
  EXPECT_THAT(simple->nodes()[0].attributes.integers, ElementsAre(1, 1, 1, 1, 1, 0, 1, 1, 1));
}

}  // namespace
}  // namespace foretune::graph
