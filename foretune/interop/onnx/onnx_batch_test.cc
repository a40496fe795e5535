#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/reference.h"
#include "foretune/interop/onnx/onnx_network.h"
#include "foretune/interop/onnx/testing/onnx_cases.h"

namespace foretune::onnx_internal {
namespace {

using graph::Shape;

// A model whose nodes stand in a row, from x to y.
class Chain {
 public:
  explicit Chain(const Shape& input, const std::vector<std::string>& names = {}) {
    graph_.text(2, "g").message(11, input_message("x", input, 1, names));
  }
  Chain& add(std::string_view op, std::string_view attribute = "",
             const std::vector<std::int64_t>& integers = {}) {
    return add_node(node_message(op, {last_}, next()), attribute, integers);
  }
  Chain& reshape(const Shape& to) {
    return add_node(node_message("Reshape", {last_}, next()), "shape", to);
  }
  Chain& transpose(const std::vector<std::int64_t>& order) {
    return add("Transpose", "perm", order);
  }

  Result<graph::Network> import(const OnnxOptions& options = {}) const {
    Message graph = graph_;
    graph.message(1, node_message("Relu", {last_}, "y")).message(12, input_message("y", {}));
    // In the first opset the shape of a reshape is an attribute.
    return import_onnx(model_message(graph, 1).bytes(), options);
  }
  std::string refusal(const OnnxOptions& options = {}) const {
    const auto network = import(options);
    return network ? "accepted" : network.error().message;
  }

 private:
  std::string next() const { return foretune::concat("t", count_ + 1); }
  Chain& add_node(Message node, std::string_view attribute,
                  const std::vector<std::int64_t>& integers) {
    if (!attribute.empty()) {
      Message list = Message().text(1, attribute).number(20, 7);
      for (const std::int64_t integer : integers) {
        list.number(8, integer);
      }
      node.message(5, list);
    }
    graph_.message(1, node);
    last_ = next();
    ++count_;
    return *this;
  }

  Message graph_;
  std::string last_ = "x";
  int count_ = 0;
};

TEST(OnnxBatch, RefusesOutputsThatHaveItBehindOtherDimensions) {
  EXPECT_EQ(Chain({-1, 4, 6}).transpose({1, 0, 2}).refusal(),
            "the output 'y' of 4x1x6 has other dimensions before the batch; transpose it in the "
            "model");
  EXPECT_EQ(Chain({1, 4, 6}).transpose({2, 1, 0}).refusal(),
            "the output 'y' of 6x4x1 has other dimensions before the batch; transpose it in the "
            "model");
  // The first tokens of all images, then the second ones.
  EXPECT_NE(Chain({-1, 4, 6}).transpose({1, 0, 2}).reshape({-1, 6}).refusal(), "accepted");
  EXPECT_NE(Chain({-1, 4}).add("Unsqueeze", "axes", {1}).transpose({2, 1, 0}).refusal(),
            "accepted");
}

TEST(OnnxBatch, AcceptsDimensionsOfOneBeforeIt) {
  EXPECT_EQ(Chain({-1, 1, 4, 6}).transpose({1, 0, 2, 3}).refusal(), "accepted");
  EXPECT_EQ(Chain({-1, 1, 4, 6}).transpose({0, 2, 3, 1}).refusal(), "accepted");
  EXPECT_EQ(Chain({-1, 4}).add("Unsqueeze", "axes", {0}).refusal(), "accepted");
}

TEST(OnnxBatch, AcceptsModelsThatTurnItBack) {
  EXPECT_EQ(Chain({-1, 4, 6}).transpose({1, 0, 2}).add("Tanh").transpose({1, 0, 2}).refusal(),
            "accepted");
  // PyTorch's attention: the heads go into the dimension of the batch.
  Chain heads({-1, 4, 6});
  heads.transpose({1, 0, 2}).reshape({4, -1, 3}).transpose({1, 0, 2}).add("Tanh");
  EXPECT_EQ(heads.refusal(), "accepted");
  heads.transpose({1, 0, 2}).reshape({4, -1, 6});
  EXPECT_NE(heads.refusal(), "accepted");
  EXPECT_EQ(heads.transpose({1, 0, 2}).refusal(), "accepted");
  // The same where the file has the numbers of one image.
  Chain fixed({1, 4, 6});
  fixed.transpose({1, 0, 2}).reshape({4, 2, 3}).transpose({1, 0, 2}).add("Tanh");
  EXPECT_EQ(fixed.refusal(), "accepted");
  fixed.transpose({1, 0, 2}).reshape({4, 6}).reshape({4, 1, 6});
  EXPECT_NE(fixed.refusal(), "accepted");
  EXPECT_EQ(fixed.transpose({1, 0, 2}).refusal(), "accepted");
}

TEST(OnnxBatch, RefusesInputsThatHaveItBehindOtherDimensions) {
  const std::string refused =
      "the input 'x' has the batch in dimension 1, behind others; transpose it in the model";
  EXPECT_EQ(Chain({4, -1, 6}, {"", "batch_size"}).refusal(), refused);
  EXPECT_EQ(Chain({-1, -1, 6}, {"tokens", "Batch"}).refusal(), refused);
  EXPECT_EQ(Chain({4, -1, 6}).refusal({.input_shapes = {{"x", {4, 1, 6}}}}), refused);
  EXPECT_EQ(Chain({1, -1, 6}, {"", "batch"}).refusal({.input_shapes = {{"x", {1, 1, 6}}}}),
            "accepted");
  EXPECT_EQ(Chain({-1, 4, 6}, {"batch"}).refusal(), "accepted");
}

// Callers run a model without a batch once for each image.
TEST(OnnxBatch, LeavesModelsWithoutABatchAlone) {
  EXPECT_EQ(Chain({2, 3}).transpose({1, 0}).refusal({.input_shapes = {{"x", {2, 3}}}}), "accepted");
}

std::vector<double> outputs(const graph::Network& network, std::int64_t batch) {
  const graph::Shape shape = graph::batch_shape(network.tensor(network.inputs()[0]), batch);
  std::vector<float> values;
  for (std::int64_t i = 0; i < graph::element_count(shape); ++i) {
    values.push_back(static_cast<float>(i));
  }
  auto results = graph::run_reference(network, {&values, 1}, batch);
  EXPECT_TRUE(results) << results.error().message;
  return results ? (*results)[0] : std::vector<double>();
}

// A model without a batch, whose input is all images, moves them as ONNX says. One that is read
// with a batch has the same output, or is refused.
TEST(OnnxBatch, KeepsTheOrderOfRandomModels) {
  constexpr std::int64_t kBatch = 5;
  Rng rng(1);
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    // The extents, where that of the batch is 0 and one that it was merged with is negative.
    Shape shape{0};
    for (std::size_t i = 1 + rng.below(3); i > 0; --i) {
      shape.push_back(1 + static_cast<std::int64_t>(rng.below(3)));
    }
    Shape input = shape;
    input[0] = -1;
    Chain chain(input);
    for (std::size_t step = rng.below(6); step > 0; --step) {
      const std::size_t at = rng.below(shape.size());
      if (rng.below(3) > 0) {
        std::vector<std::int64_t> order;
        for (std::size_t i = 0; i < shape.size(); ++i) {
          order.push_back(static_cast<std::int64_t>(i));
        }
        std::swap(order[at], order[rng.below(order.size())]);
        Shape turned;
        for (const std::int64_t from : order) {
          turned.push_back(shape[static_cast<std::size_t>(from)]);
        }
        shape = turned;
        chain.transpose(order);
      } else if (rng.below(2) == 0 && shape.size() < 5) {
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
        chain.add("Unsqueeze", "axes", {static_cast<std::int64_t>(at)});
      } else if (at + 1 < shape.size()) {
        const std::int64_t left = shape[at];
        const std::int64_t right = shape[at + 1];
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
        shape[at] = left < 1 || right < 1 ? -1 : left * right;
        Shape wanted = shape;
        std::replace(wanted.begin(), wanted.end(), std::int64_t{0}, std::int64_t{-1});
        chain.reshape(wanted);
      }
    }
    const auto network = chain.import();
    if (!network) {
      EXPECT_NE(network.error().message.find("before the batch"), std::string::npos)
          << network.error().message;
      ++refused;
      continue;
    }
    Shape all = input;
    all[0] = kBatch;
    const auto expected = chain.import({.input_shapes = {{"x", all}}});
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(outputs(*network, kBatch), outputs(*expected, 1)) << round;
    ++accepted;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace foretune::onnx_internal
