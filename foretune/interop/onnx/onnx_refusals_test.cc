#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/interop/onnx/onnx_network.h"
#include "foretune/interop/onnx/testing/onnx_cases.h"

namespace foretune::onnx_internal {
namespace {

using testing::HasSubstr;

// A model of one node, with the input x and the output y.
Message one_node(const Message& node, const std::vector<std::int64_t>& shape = {-1, 4},
                 const std::vector<Message>& weights = {}, std::int64_t type = 1) {
  Message graph;
  graph.message(1, node).text(2, "g").message(11, input_message("x", shape, type));
  for (const Message& tensor : weights) {
    graph.message(5, tensor);
  }
  return model_message(graph.message(12, input_message("y", {})));
}

std::string refusal(const Message& model, ErrorCode code, const OnnxOptions& options = {}) {
  const auto network = import_onnx(model.bytes(), options);
  EXPECT_FALSE(network);
  if (network) {
    return "accepted";
  }
  EXPECT_EQ(network.error().code, code) << network.error().message;
  return network.error().message;
}

TEST(OnnxRefusals, AcceptsTheModelThatTheOthersChange) {
  const auto network = import_onnx(one_node(node_message("Relu", {"x"}, "y")).bytes());
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(network->nodes()[0].name, "the_node");
}

TEST(OnnxRefusals, NameOperatorNodeAndDomain) {
  EXPECT_EQ(refusal(one_node(node_message("Einsum", {"x"}, "y")), ErrorCode::kUnsupported),
            "the node 'the_node' ('Einsum'): no operation of networks does this; its opset is "
            "ai.onnx 17");
  EXPECT_THAT(
      refusal(one_node(node_message("Relu", {"x"}, "y", "com.example")), ErrorCode::kUnsupported),
      HasSubstr("its opset is 'com.example'"));
}

// The rest of a division has the sign of the divisor, or with fmod that of the dividend.
TEST(OnnxRefusals, FollowTheSignsOfMod) {
  const auto integers = [](std::string_view name, std::vector<std::int64_t> values) {
    const std::string raw(reinterpret_cast<const char*>(values.data()), values.size() * 8);
    return weights_message(name, {static_cast<std::int64_t>(values.size())}, raw, 7);
  };
  const auto model = [&](bool fmod) {
    Message mod = node_message("Mod", {"a", "b"}, "s");
    if (fmod) {
      mod.message(5, Message().text(1, "fmod").number(20, 2).number(3, 1));
    }
    Message graph;
    graph.message(1, mod).message(1, node_message("Reshape", {"x", "s"}, "y")).text(2, "g");
    graph.message(11, input_message("x", {-1, 2, 2})).message(12, input_message("y", {}));
    graph.message(5, integers("a", {-7, 12})).message(5, integers("b", {4, 8}));
    return model_message(graph);
  };
  const auto network = import_onnx(model(false).bytes());
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(graph::to_text(network->tensor(network->outputs()[0]).shape), "1x4");
  EXPECT_THAT(refusal(model(true), ErrorCode::kInvalidArgument), HasSubstr("cannot become -3x4"));
}

TEST(OnnxRefusals, NameQuantisedModels) {
  for (const std::string_view op : {"QuantizeLinear", "DequantizeLinear", "QLinearConv"}) {
    EXPECT_THAT(refusal(one_node(node_message(op, {"x"}, "y")), ErrorCode::kUnsupported),
                HasSubstr("the model is quantised; give the one of floats"));
  }
  EXPECT_THAT(refusal(one_node(node_message("QGemm", {"x"}, "y", "com.microsoft")),
                      ErrorCode::kUnsupported),
              HasSubstr("the model is quantised"));
}

TEST(OnnxRefusals, NameOpenExtentsUntilTheyAreGiven) {
  const Message model = one_node(node_message("Relu", {"x"}, "y"), {-1, 3, -1});
  EXPECT_EQ(refusal(model, ErrorCode::kInvalidArgument),
            "the input 'x' is open in dimension 2; give its shape");
  const auto network = import_onnx(model.bytes(), {.input_shapes = {{"x", {1, 3, 5}}}});
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(graph::to_text(network->tensor(network->outputs()[0]).shape), "1x3x5");
}

TEST(OnnxRefusals, NameInputsThatAreNoFloats) {
  EXPECT_EQ(
      refusal(one_node(node_message("Relu", {"x"}, "y"), {-1, 4}, {}, 7), ErrorCode::kUnsupported),
      "the input 'x' is not of floats, but of ONNX's type 7");
}

TEST(OnnxRefusals, NameWeightsInOtherFiles) {
  Message weights = weights_message("w", {4, 4}, "");
  weights.number(14, 1);
  EXPECT_THAT(refusal(one_node(node_message("MatMul", {"x", "w"}, "y"), {-1, 4}, {weights}),
                      ErrorCode::kUnsupported),
              HasSubstr("the weights 'w': the elements are in another file"));
}

TEST(OnnxRefusals, NameWeightsOfAnotherSize) {
  EXPECT_THAT(refusal(one_node(node_message("MatMul", {"x", "w"}, "y"), {-1, 4},
                               {weights_message("w", {4, 4}, "abcd")}),
                      ErrorCode::kCorrupt),
              HasSubstr("a tensor of 4x4 has another number of elements"));
  EXPECT_THAT(refusal(one_node(node_message("MatMul", {"x", "w"}, "y"), {-1, 4},
                               {weights_message("w", {std::int64_t{1} << 40U, 1 << 30U}, "abcd")}),
                      ErrorCode::kInvalidArgument),
              HasSubstr("too many elements"));
}

TEST(OnnxRefusals, LimitWhatConstantsTake) {
  const std::string shape(reinterpret_cast<const char*>("\0\0\0\0\1\0\0\0"), 8);  // 2^32
  EXPECT_THAT(refusal(one_node(node_message("ConstantOfShape", {"s"}, "y"), {-1, 4},
                               {weights_message("s", {1}, shape, 7)}),
                      ErrorCode::kInvalidArgument),
              HasSubstr("the constants of the model have too many elements"));
}

TEST(OnnxRefusals, NameValuesThatNothingComputes) {
  EXPECT_THAT(refusal(one_node(node_message("Relu", {"z"}, "y")), ErrorCode::kCorrupt),
              HasSubstr("'z' is used before it is computed"));
  EXPECT_THAT(refusal(one_node(node_message("Relu", {}, "y")), ErrorCode::kCorrupt),
              HasSubstr("input 0 is missing"));
}

TEST(OnnxRefusals, NameShapesThatDoNotFit) {
  EXPECT_THAT(refusal(one_node(node_message("MatMul", {"x", "w"}, "y"), {-1, 3},
                               {weights_message("w", {1, 1}, "abcd")}),
                      ErrorCode::kInvalidArgument),
              testing::StartsWith("the node 'the_node' ('MatMul'): weights 1x1 do not fit"));
  EXPECT_THAT(
      refusal(one_node(node_message("Softmax", {"x"}, "y"), {-1}), ErrorCode::kInvalidArgument),
      HasSubstr("the node 'the_node' ('Softmax')"));
}

TEST(OnnxRefusals, NameBatchesThatDiffer) {
  Message graph;
  graph.message(1, node_message("Add", {"x", "z"}, "y")).text(2, "g");
  graph.message(11, input_message("x", {2, 4})).message(11, input_message("z", {3, 4}));
  EXPECT_EQ(
      refusal(model_message(graph.message(12, input_message("y", {}))), ErrorCode::kUnsupported),
      "inputs fix batches of 2 and 3");
}

TEST(OnnxRefusals, NameOutputsThatNothingComputes) {
  EXPECT_EQ(refusal(one_node(node_message("Identity", {"x"}, "y")), ErrorCode::kUnsupported),
            "the output 'y' is an input as it came");
  EXPECT_THAT(refusal(one_node(node_message("Relu", {"x"}, "other")), ErrorCode::kCorrupt),
              HasSubstr("'y' is used before it is computed"));
}

TEST(OnnxRefusals, NameReductionsOverTheBatch) {
  EXPECT_THAT(refusal(one_node(node_message("ReduceMax", {"x"}, "y")), ErrorCode::kUnsupported),
              HasSubstr("the reduction goes over the batch"));
}

TEST(OnnxRefusals, RefuseBytesThatAreNoModel) {
  EXPECT_EQ(refusal(Message().text(1, "nothing"), ErrorCode::kCorrupt),
            "the bytes are no ONNX model");
  EXPECT_FALSE(import_onnx({}));
  EXPECT_FALSE(read_onnx("no such file.onnx"));
}

TEST(OnnxRefusals, SurviveEveryCutAndManyFlippedBytes) {
  const auto bytes = read_file(onnx_testdata() / "encoder_block.onnx");
  ASSERT_TRUE(bytes);
  const OnnxOptions options{.max_constants = 1 << 16U};
  for (std::size_t size = 0; size < bytes->size(); size += 7) {
    EXPECT_FALSE(import_onnx(std::span(*bytes).first(size), options)) << size;
  }
  for (std::size_t place = 0; place < bytes->size(); place += 5) {
    std::vector<std::byte> changed = *bytes;
    changed[place] ^= std::byte{static_cast<unsigned char>(1U << place % 8)};
    const auto network = import_onnx(changed, options);
    EXPECT_TRUE(network || !network.error().message.empty());
  }
}

}  // namespace
}  // namespace foretune::onnx_internal
