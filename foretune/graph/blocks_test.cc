#include "foretune/graph/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Adds layers whose weights differ, which must not matter.
class Layers {
 public:
  explicit Layers(NetworkBuilder& builder) : builder_(builder) {}

  TensorId conv(TensorId x, std::int64_t filters, std::int64_t kernel = 3,
                std::int64_t stride = 1) {
    const std::int64_t pad = kernel / 2;
    const TensorId weights = constant({filters, builder_.shape(x)[1], kernel, kernel});
    return builder_.add("conv", "", {x, weights},
                        {.integers = {stride, stride, pad, pad, pad, pad, 1, 1, 1}});
  }
  TensorId linear(TensorId x, std::int64_t outputs) {
    return builder_.add("linear", "",
                        {x, constant({outputs, builder_.shape(x).back()}), constant({outputs})});
  }
  TensorId norm(TensorId x) {
    const Shape& shape = builder_.shape(x);
    const Shape scale{shape.back()};
    const Attributes last{.integers = {static_cast<std::int64_t>(shape.size()) - 1},
                          .numbers = {1e-5}};
    return builder_.add("layer_norm", "", {x, constant(scale), constant(scale)}, last);
  }
  TensorId relu(TensorId x) { return builder_.add("relu", "", {x}); }
  TensorId add(TensorId a, TensorId b) { return builder_.add("add", "", {a, b}); }

  // conv relu conv add relu, with a third convolution where the shape changes.
  TensorId residual(TensorId x, std::int64_t filters, std::int64_t stride) {
    const TensorId inner = conv(relu(conv(x, filters, 3, stride)), filters);
    return relu(
        add(inner, builder_.shape(x) == builder_.shape(inner) ? x : conv(x, filters, 1, stride)));
  }
  // A block of an encoder: attention and two products, each behind a normalisation.
  TensorId encoder(TensorId x, std::int64_t heads) {
    const std::int64_t words = builder_.shape(x)[1];
    const std::int64_t width = builder_.shape(x)[2];
    const TensorId normal = norm(x);
    const auto split = [&](std::vector<std::int64_t> order) {
      const TensorId parts = builder_.add("reshape", "", {linear(normal, width)},
                                          {.integers = {1, words, heads, width / heads}});
      return builder_.add("transpose", "", {parts}, {.integers = std::move(order)});
    };
    const TensorId queries = split({0, 2, 1, 3});
    const TensorId keys = split({0, 2, 3, 1});
    const TensorId values = split({0, 2, 1, 3});
    const TensorId shares = builder_.add(
        "softmax", "", {builder_.add("matmul", "", {queries, keys})}, {.integers = {3}});
    const TensorId mixed =
        builder_.add("transpose", "", {builder_.add("matmul", "", {shares, values})},
                     {.integers = {0, 2, 1, 3}});
    const TensorId joined = builder_.add("reshape", "", {mixed}, {.integers = {1, words, width}});
    const TensorId attended = add(linear(joined, width), x);
    const TensorId wide = builder_.add("gelu", "", {linear(norm(attended), 4 * width)});
    return add(linear(wide, width), attended);
  }

 private:
  TensorId constant(Shape shape) {
    const auto count = static_cast<std::size_t>(element_count(shape));
    return builder_.constant("", std::move(shape), std::vector<float>(count, next_ += 0.5F));
  }

  NetworkBuilder& builder_;
  float next_ = 0;
};

// Returns the operations of each repeat of a block, in one word each.
std::string block_text(const Network& network, const RepeatedBlock& block) {
  std::string text = concat(block.times, " x");
  for (const Node& node : network.nodes().subspan(block.first, block.length)) {
    text += concat(" ", node.op->name);
  }
  return text;
}

std::vector<std::string> block_texts(const Network& network) {
  std::vector<std::string> texts;
  for (const RepeatedBlock& block : repeated_blocks(network)) {
    texts.push_back(block_text(network, block));
  }
  return texts;
}

Network residual_network(std::int64_t stages, std::int64_t blocks) {
  NetworkBuilder builder("residual");
  Layers layers(builder);
  TensorId x = layers.relu(layers.conv(builder.input("image", {1, 3, 16, 16}), 4));
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      x = layers.residual(x, 4 << stage, stage > 0 && block == 0 ? 2 : 1);
    }
  }
  const TensorId mean = builder.add("reduce_mean", "", {x}, {.integers = {0, 2, 3}});
  return *builder.finish({layers.linear(mean, 10)});
}

TEST(RepeatedBlocks, OfResidualStages) {
  const Network network = residual_network(3, 3);
  const std::string block = " x conv relu conv add relu";
  const std::vector<RepeatedBlock> found = repeated_blocks(network);
  EXPECT_THAT(block_texts(network),
              ElementsAre(concat(3, block), concat(2, block), concat(2, block)));
  // Behind the first convolution and its ReLU; the others behind a block of six operations.
  EXPECT_THAT(
      found, ElementsAre(RepeatedBlock{2, 5, 3}, RepeatedBlock{23, 5, 2}, RepeatedBlock{39, 5, 2}));
  // The first layer, the blocks of the first stage, then for each stage its first block (two
  // convolutions and the shortcut) and two equal ones, at last the product.
  EXPECT_THAT(alike_layers(network), ElementsAre(0, 1, 2, 1, 2, 1, 2,       //
                                                 3, 4, 5, 6, 7, 6, 7,       //
                                                 8, 9, 10, 11, 12, 11, 12,  //
                                                 13));
}

TEST(RepeatedBlocks, OfAnEncoder) {
  NetworkBuilder builder("encoder");
  Layers layers(builder);
  TensorId x = layers.linear(builder.input("words", {1, 6, 5}), 8);
  for (int i = 0; i < 12; ++i) {
    x = layers.encoder(x, 2);
  }
  const Network network = *builder.finish({layers.linear(layers.norm(x), 3)});
  const std::vector<RepeatedBlock> blocks = repeated_blocks(network);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0], (RepeatedBlock{1, 22, 12}));
  // Queries, keys, values, the product behind them, two products: a class of twelve each.
  std::vector<std::int32_t> wanted{0};
  for (int i = 0; i < 12; ++i) {
    wanted.insert(wanted.end(), {1, 2, 3, 4, 5, 6});
  }
  wanted.push_back(7);
  EXPECT_EQ(alike_layers(network), wanted);
}

TEST(RepeatedBlocks, NoneWhereNothingRepeats) {
  NetworkBuilder builder("chain");
  Layers layers(builder);
  TensorId x = builder.input("x", {1, 4});
  for (std::int64_t width = 5; width < 12; ++width) {
    x = layers.relu(layers.linear(x, width));
  }
  const Network network = *builder.finish({x});
  EXPECT_THAT(repeated_blocks(network), IsEmpty());
  EXPECT_THAT(alike_layers(network), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(RepeatedBlocks, OfOneNode) {
  NetworkBuilder builder("one");
  Layers layers(builder);
  const Network layer = *builder.finish({layers.linear(builder.input("x", {1, 4}), 4)});
  EXPECT_THAT(repeated_blocks(layer), IsEmpty());
  EXPECT_THAT(alike_layers(layer), ElementsAre(0));
  NetworkBuilder other("other");
  const Network relu = *other.finish({other.add("relu", "", {other.input("x", {1, 4})})});
  EXPECT_THAT(repeated_blocks(relu), IsEmpty());
  EXPECT_THAT(alike_layers(relu), IsEmpty());
}

TEST(RepeatedBlocks, TakesTheShorterOfEqualCovers) {
  NetworkBuilder builder("chain");
  Layers layers(builder);
  TensorId x = builder.input("x", {1, 4});
  for (int i = 0; i < 8; ++i) {
    x = layers.relu(layers.linear(x, 4));
  }
  EXPECT_THAT(repeated_blocks(*builder.finish({x})), ElementsAre(RepeatedBlock{0, 2, 8}));
}

TEST(RepeatedBlocks, WhatALongerBlockLeavesIsFound) {
  // [linear relu] 3 times and gelu, twice; the repeats within are part of the longer block. Behind
  // it linear relu stands twice more, which the longer one's stretch touches.
  NetworkBuilder builder("nested");
  Layers layers(builder);
  TensorId x = builder.input("x", {1, 4});
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      x = layers.relu(layers.linear(x, 4));
    }
    x = builder.add("gelu", "", {x});
  }
  for (int j = 0; j < 2; ++j) {
    x = layers.relu(layers.linear(x, 4));
  }
  const Network network = *builder.finish({x});
  EXPECT_THAT(repeated_blocks(network),
              ElementsAre(RepeatedBlock{0, 7, 2}, RepeatedBlock{14, 2, 2}));
}

TEST(RepeatedBlocks, RepeatsReadTheOneBefore) {
  NetworkBuilder builder("branches");
  Layers layers(builder);
  const TensorId x = builder.input("x", {1, 4});
  TensorId sum = layers.relu(layers.linear(x, 4));
  for (int i = 0; i < 3; ++i) {
    sum = builder.add("concat", "", {sum, layers.relu(layers.linear(x, 4))}, {.integers = {1}});
  }
  // The sums grow, so nothing repeats.
  EXPECT_THAT(repeated_blocks(*builder.finish({sum})), IsEmpty());

  NetworkBuilder side("side");
  Layers beside(side);
  const TensorId y = side.input("y", {1, 4});
  std::vector<TensorId> branches;
  for (int i = 0; i < 4; ++i) {
    branches.push_back(beside.relu(beside.linear(y, 4)));
  }
  const Network network = *side.finish(branches);
  EXPECT_THAT(repeated_blocks(network), IsEmpty());
  EXPECT_THAT(alike_layers(network), ElementsAre(0, 0, 0, 0));
}

TEST(RepeatedBlocks, OtherConnectionsEndABlock) {
  // The fifth of six blocks adds the result of the first instead of its own input.
  NetworkBuilder builder("wires");
  Layers layers(builder);
  TensorId x = layers.linear(builder.input("x", {1, 3}), 4);
  TensorId early = kNoTensor;
  for (int i = 0; i < 6; ++i) {
    const TensorId inner = layers.linear(layers.relu(layers.linear(x, 4)), 4);
    const TensorId other = i == 4 ? early : x;
    x = layers.add(inner, other);
    early = i == 0 ? x : early;
  }
  const Network network = *builder.finish({x});
  EXPECT_THAT(repeated_blocks(network), ElementsAre(RepeatedBlock{1, 4, 4}));

  NetworkBuilder inside("inside");
  Layers inner_layers(inside);
  x = inner_layers.linear(inside.input("x", {1, 3}), 4);
  for (int i = 0; i < 6; ++i) {
    const TensorId first = inner_layers.relu(inner_layers.linear(x, 4));
    const TensorId second = inner_layers.linear(first, 4);
    x = inner_layers.add(second, i == 3 ? first : x);
  }
  EXPECT_THAT(repeated_blocks(*inside.finish({x})),
              ElementsAre(RepeatedBlock{1, 4, 3}, RepeatedBlock{17, 4, 2}));
}

TEST(RepeatedBlocks, MayShareATensor) {
  // Every block adds the same context, whose last operation stands directly before the first one.
  for (const bool is_input : {false, true}) {
    NetworkBuilder builder("context");
    Layers layers(builder);
    TensorId x = builder.input("x", {1, 4});
    TensorId context = builder.input("context", {1, 4});
    if (!is_input) {
      context = builder.add("tanh", "", {context});
    }
    for (int i = 0; i < 4; ++i) {
      x = layers.relu(layers.add(layers.linear(x, 4), context));
    }
    const Network network = *builder.finish({x});
    EXPECT_THAT(repeated_blocks(network), ElementsAre(RepeatedBlock{is_input ? 0U : 1U, 3, 4}));
    EXPECT_THAT(alike_layers(network), ElementsAre(0, 0, 0, 0));
  }
}

TEST(AlikeLayers, DifferInAttributesAndSurroundings) {
  // Equal shapes throughout: a stride of 1 without padding, and dilations that keep the extent.
  NetworkBuilder builder("conv");
  const auto conv = [&](TensorId x, std::int64_t dilation) {
    const TensorId w = builder.constant("w", {2, 2, 3, 3}, std::vector<float>(36, 1.0F));
    return builder.add(
        "conv", "", {x, w},
        {.integers = {1, 1, dilation, dilation, dilation, dilation, dilation, dilation, 1}});
  };
  const TensorId image = builder.input("image", {1, 2, 9, 9});
  const TensorId a = builder.add("relu", "", {conv(image, 1)});
  const TensorId b = builder.add("relu", "", {conv(image, 2)});
  const TensorId c = builder.add("relu", "", {conv(image, 1)});
  const TensorId d = builder.add("sigmoid", "", {conv(image, 1)});
  EXPECT_THAT(alike_layers(*builder.finish({a, b, c, d})), ElementsAre(0, 1, 0, 2));
}

// Says in what two operations differ, or nothing.
std::string difference(const Network& network, const Node& a, const Node& b) {
  if (a.op != b.op || a.attributes != b.attributes || a.inputs.size() != b.inputs.size()) {
    return concat(a.name, " and ", b.name, " are different operations");
  }
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const Tensor& one = network.tensor(a.inputs[i]);
    const Tensor& other = network.tensor(b.inputs[i]);
    if (one.shape != other.shape || one.is_constant() != other.is_constant()) {
      return concat(a.name, " and ", b.name, " have different operands");
    }
  }
  return network.tensor(a.output).shape == network.tensor(b.output).shape
             ? std::string()
             : concat(a.name, " and ", b.name, " have different results");
}

// Returns the nodes that compute a node's operands, -1 for constants and the input.
std::vector<std::int64_t> producers_of(const Network& network, const Node& node) {
  std::vector<std::int64_t> producers;
  for (const TensorId id : node.inputs) {
    producers.push_back(network.tensor(id).node);
  }
  return producers;
}

// Says why the operations from `begin` on do not repeat the same number of operations before them,
// or nothing. The first repeat may read anything before it where the `is_second` one reads from
// before itself.
std::string no_repeat(const Network& network, std::size_t begin, std::size_t length,
                      bool is_second) {
  const auto here = static_cast<std::int64_t>(begin);
  const auto size = static_cast<std::int64_t>(length);
  bool reads_last = false;
  for (std::size_t i = begin; i < begin + length; ++i) {
    const Node& last = network.nodes()[i - length];
    const Node& node = network.nodes()[i];
    if (std::string text = difference(network, last, node); !text.empty()) {
      return text;
    }
    const std::vector<std::int64_t> before = producers_of(network, last);
    const std::vector<std::int64_t> now = producers_of(network, node);
    for (std::size_t operand = 0; operand < now.size(); ++operand) {
      const bool is_shared = now[operand] == before[operand] && now[operand] < here - size;
      const bool is_outside = is_second && before[operand] < here - size && now[operand] < here;
      if (!network.tensor(node.inputs[operand]).is_constant() && !is_shared && !is_outside &&
          now[operand] != before[operand] + size) {
        return concat(last.name, " and ", node.name, " read different results");
      }
      reads_last =
          reads_last || (now[operand] >= 0 && now[operand] >= here - size && now[operand] < here);
    }
  }
  return reads_last ? std::string() : concat("nothing of the repeat before ", begin, " is read");
}

// Returns true when a walk along the operands and readers within a block reaches all of it.
bool is_connected(const Network& network, std::size_t begin, std::size_t length) {
  std::vector<bool> reached(length, false);
  reached[0] = true;
  for (std::size_t round = 0; round < length; ++round) {
    for (std::size_t i = 0; i < length; ++i) {
      for (const std::int64_t node : producers_of(network, network.nodes()[begin + i])) {
        if (node >= static_cast<std::int64_t>(begin)) {
          const std::size_t other = static_cast<std::size_t>(node) - begin;
          reached[i] = reached[other] = reached[i] || reached[other];
        }
      }
    }
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

// Checks what holds for every network, and returns the operations within blocks.
std::size_t check_blocks(const Network& network) {
  std::vector<bool> covered(network.nodes().size(), false);
  std::size_t last_cover = covered.size();
  std::size_t count = 0;
  for (const RepeatedBlock& block : repeated_blocks(network)) {
    const std::size_t cover = block.length * block.times;
    EXPECT_GE(block.length, 1U);
    EXPECT_GE(block.times, 2U);
    EXPECT_LE(cover, last_cover);
    last_cover = cover;
    count += cover;
    if (block.first + cover > covered.size()) {
      ADD_FAILURE() << "a block ends at " << block.first + cover;
      return count;
    }
    for (std::size_t i = block.first; i < block.first + cover; ++i) {
      EXPECT_FALSE(covered[i]) << "operation " << i << " has two blocks";
      covered[i] = true;
    }
    EXPECT_TRUE(is_connected(network, block.first, block.length));
    for (std::size_t next = 1; next < block.times; ++next) {
      EXPECT_EQ(no_repeat(network, block.first + next * block.length, block.length, next == 1), "");
    }
  }
  return count;
}

// Returns the pairs of alike layers.
std::size_t check_classes(const Network& network) {
  std::vector<const Node*> layers;
  for (const Node& node : network.nodes()) {
    if (has_weights(*node.op)) {
      layers.push_back(&node);
    }
  }
  const std::vector<std::int32_t> classes = alike_layers(network);
  EXPECT_EQ(classes.size(), layers.size());
  std::size_t pairs = 0;
  std::int32_t next = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    EXPECT_LE(classes[i], next) << "classes are numbered by first appearance";
    next = std::max(next, classes[i] + 1);
    for (std::size_t j = 0; j < i; ++j) {
      if (classes[i] == classes[j]) {
        ++pairs;
        EXPECT_EQ(difference(network, *layers[i], *layers[j]), "");
      }
    }
  }
  return pairs;
}

TEST(RepeatedBlocks, HoldTheirPromisesOnRandomNetworks) {
  Rng rng(11);
  std::size_t covered = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    NetworkBuilder builder("random");
    const auto network = testing::RandomNetwork(builder, rng).draw(2 + i % 40);
    ASSERT_TRUE(network) << network.error().message;
    covered += check_blocks(*network);
    check_classes(*network);
  }
  EXPECT_GT(covered, 20U);
}

// Draws operations of one shape, whose sequences repeat by chance, and which read the last or an
// earlier result.
Network drawn_chain(Rng& rng, std::size_t count, std::uint64_t kinds) {
  NetworkBuilder builder("chain");
  Layers layers(builder);
  std::vector<TensorId> results{builder.input("x", {1, 2})};
  while (results.size() <= count) {
    const TensorId x = rng.below(4) == 0 ? results[rng.below(results.size())] : results.back();
    switch (rng.below(kinds)) {
      case 0:
        results.push_back(layers.relu(x));
        break;
      case 1:
        results.push_back(layers.linear(x, 2));
        break;
      default:
        results.push_back(layers.add(x, results[rng.below(results.size())]));
        break;
    }
  }
  return *builder.finish({results.back()});
}

// Returns the most operations that one block covers all of whose repeats read alike, by trying all.
std::size_t largest_cover(const Network& network) {
  const std::size_t count = network.nodes().size();
  std::size_t best = 0;
  for (std::size_t length = 1; 2 * length <= count; ++length) {
    for (std::size_t first = 0; first + 2 * length <= count; ++first) {
      std::size_t times = 1;
      while (first + (times + 1) * length <= count &&
             no_repeat(network, first + times * length, length, false).empty()) {
        ++times;
      }
      if (times > 1 && is_connected(network, first, length)) {
        best = std::max(best, times * length);
      }
    }
  }
  return best;
}

TEST(RepeatedBlocks, HoldTheirPromisesWhereMuchRepeats) {
  Rng rng(12);
  constexpr int kNetworks = 400;
  int longest = 0;
  std::size_t pairs = 0;
  for (int i = 0; i < kNetworks; ++i) {
    SCOPED_TRACE(i);
    const Network network = drawn_chain(rng, 3 + static_cast<std::size_t>(i) % 60, 1 + i % 3);
    check_blocks(network);
    pairs += check_classes(network);
    const std::vector<RepeatedBlock> blocks = repeated_blocks(network);
    const std::size_t found = blocks.empty() ? 0 : blocks[0].length * blocks[0].times;
    longest += found >= largest_cover(network) ? 1 : 0;
  }
  EXPECT_GT(pairs, 1000U);
  // Where repeats share tensors, another begin may cover more.
  EXPECT_GE(longest, kNetworks * 95 / 100);
}

TEST(RepeatedBlocks, LargeNetworksTakeMilliseconds) {
  Rng rng(13);
  NetworkBuilder builder("deep");
  Layers layers(builder);
  TensorId x = builder.input("x", {1, 2});
  for (int i = 0; i < 2000; ++i) {
    x = layers.relu(x);
  }
  const Network equal = *builder.finish({x});
  for (const Network& network : {equal, drawn_chain(rng, 2000, 2), residual_network(2, 200)}) {
    double best_ms = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(repeated_blocks(network).empty());
      EXPECT_LE(alike_layers(network).size(), network.nodes().size());
      const std::chrono::duration<double, std::milli> spent =
          std::chrono::steady_clock::now() - begin;
      best_ms = std::min(best_ms, spent.count());
    }
#if defined(FORETUNE_SANITIZED) || !defined(__OPTIMIZE__)
    EXPECT_LT(best_ms, 5000);
#else
    EXPECT_LT(best_ms, 50);
#endif
  }
}

}  // namespace
}  // namespace foretune::graph
