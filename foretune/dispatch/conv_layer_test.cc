#include "foretune/dispatch/conv_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dispatch/conv_dispatch.h"
#include "foretune/families/cpu_conv/conv_data.h"

namespace foretune {
namespace {

using cpu_conv::ConvData;

ConvSizes sizes_of_layer(ConvOperation operation, ConvEpilogue epilogue = ConvEpilogue::kNone,
                         std::int64_t groups = 1) {
  return {.operation = operation,
          .n = 2,
          .c = 12,
          .k = 24,
          .g = groups,
          .hi = 9,
          .wi = 7,
          .y = 3,
          .x = 3,
          .stride_h = 2,
          .pad_h = 1,
          .pad_w = 1,
          .weights = operation == ConvOperation::kBackwardWeight ? ConvWeights::kVarying
                                                                 : ConvWeights::kConstant,
          .epilogue = epilogue};
}

std::unique_ptr<ConvData> data_of(const ConvProblem& problem, std::uint64_t seed) {
  auto data = ConvData::create(problem, seed, {});
  EXPECT_TRUE(data) << data.error().message;
  return *std::move(data);
}

// Packs a copy of the data's weights and overwrites it.
void pack(ConvLayer& layer, ConvData& data) {
  std::vector<float> weights(data.weights(), data.weights() + layer.problem().weight_elements());
  const Status packed = layer.pack(weights.data());
  ASSERT_TRUE(packed) << packed.error().message;
  std::ranges::fill(weights, std::numeric_limits<float>::quiet_NaN());
}

// Runs the layer on the data's tensors and compares the result with the definition.
void expect_right(ConvLayer& layer, ConvData& data, bool with_weights = false) {
  const cpu_conv::ConvOperands operands = data.operands();
  const bool is_gradient = layer.problem().operation() == ConvOperation::kBackwardWeight;
  data.poison();
  const Status ran = layer.run({.input = data.input(),
                                .weights = with_weights && !is_gradient ? data.weights() : nullptr,
                                .output = data.output(),
                                .bias = is_gradient ? nullptr : operands.bias,
                                .addend = is_gradient ? nullptr : operands.residual,
                                .result = data.result().data()});
  ASSERT_TRUE(ran) << ran.error().message;
  const Support right = data.verify();
  EXPECT_TRUE(right) << right.reason();
}

TEST(ConvLayerTest, RunsPackedWeightsInTwoDirectionsWithEpilogues) {
  const auto dispatcher = ConvDispatcher::for_this_cpu({});
  ASSERT_TRUE(dispatcher) << dispatcher.error().message;
  std::vector<ConvSizes> cases{sizes_of_layer(ConvOperation::kBackwardData),
                               sizes_of_layer(ConvOperation::kForward, ConvEpilogue::kBias, 12)};
  for (const auto epilogue : {ConvEpilogue::kNone, ConvEpilogue::kBias, ConvEpilogue::kBiasRelu,
                              ConvEpilogue::kBiasAddRelu}) {
    cases.push_back(sizes_of_layer(ConvOperation::kForward, epilogue));
  }
  for (const ConvSizes& sizes : cases) {
    const ConvProblem problem = *ConvProblem::create(sizes);
    const auto layer = (*dispatcher)->layer(problem);
    ASSERT_TRUE(layer) << layer.error().message;
    const auto data = data_of(problem, 3);
    pack(**layer, *data);
    expect_right(**layer, *data);
    // Weights of another seed replace those of before.
    const auto other = data_of(problem, 4);
    expect_right(**layer, *other, true);
    expect_right(**layer, *data);
    pack(**layer, *other);
    expect_right(**layer, *other);
  }
}

TEST(ConvLayerTest, AGradientOfWeightsNeedsNone) {
  const auto dispatcher = ConvDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(dispatcher);
  const ConvProblem problem = *ConvProblem::create(sizes_of_layer(ConvOperation::kBackwardWeight));
  const auto layer = (*dispatcher)->layer(problem);
  ASSERT_TRUE(layer) << layer.error().message;
  expect_right(**layer, *data_of(problem, 3));
  const Status refused = (*layer)->pack(data_of(problem, 3)->weights());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("weights=constant"), std::string::npos);
}

// Trials compare the first choice with others, each with weights of its own.
TEST(ConvLayerTest, MeasuresWhileItWorks) {
  const testing_support::TemporaryFolder folder;
  const auto dispatcher = ConvDispatcher::for_this_cpu(
      {.threads = 1,
       .dispatch = {
           .measure_top = 5, .measure_rounds = 2, .measure_seconds = 100, .keep_trials = true}});
  ASSERT_TRUE(dispatcher);
  const ConvProblem problem =
      *ConvProblem::create(sizes_of_layer(ConvOperation::kForward, ConvEpilogue::kBiasAddRelu));
  const auto layer = (*dispatcher)->layer(problem);
  ASSERT_TRUE(layer);
  const auto data = data_of(problem, 3);
  pack(**layer, *data);
  const auto before = (*layer)->decision();
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->is_settled);
  EXPECT_NE(before->source, ChoiceSource::kMeasured);
  for (int call = 0; call < 12; ++call) {
    expect_right(**layer, *data);
  }
  const auto after = (*layer)->decision();
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->is_settled);
  EXPECT_EQ(after->source, ChoiceSource::kMeasured);
  EXPECT_GT(after->measured_ns, 0);
  const auto rows =
      (*dispatcher)->dispatcher().append_trials(folder.path() / "trials.ftd", "cpu-conv");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, 5U);
  // The decision is kept, with weights that are packed after it as well.
  const auto other = data_of(problem, 4);
  pack(**layer, *other);
  expect_right(**layer, *other);

  const auto next = ConvDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(next);
  ASSERT_TRUE((*next)->dispatcher().load_choices(folder.path() / "trials.ftd"));
  const auto remembered = (*next)->layer(problem);
  ASSERT_TRUE(remembered);
  EXPECT_EQ((*remembered)->decision()->source, ChoiceSource::kRemembered);
  EXPECT_EQ((*remembered)->decision()->config_text, after->config_text);
  pack(**remembered, *data);
  expect_right(**remembered, *data);
}

TEST(ConvLayerTest, ThreadsMayRunOneLayerWhileItMeasures) {
  const auto dispatcher = ConvDispatcher::for_this_cpu(
      {.dispatch = {.measure_top = 4, .measure_rounds = 3, .measure_seconds = 100}});
  ASSERT_TRUE(dispatcher);
  const ConvProblem problem =
      *ConvProblem::create(sizes_of_layer(ConvOperation::kForward, ConvEpilogue::kBiasRelu));
  const auto layer = (*dispatcher)->layer(problem);
  ASSERT_TRUE(layer);
  const auto data = data_of(problem, 5);
  pack(**layer, *data);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto mine = data_of(problem, 5);
      for (int call = 0; call < 12; ++call) {
        expect_right(**layer, *mine, call % 3 == 2);
        if (thread == 0 && call % 4 == 1) {
          pack(**layer, *mine);  // the same values again
        }
      }
    });
  }
  threads.clear();
  const auto settled = (*layer)->decision();
  ASSERT_TRUE(settled);
  EXPECT_TRUE(settled->is_settled);
  expect_right(**layer, *data);
}

TEST(ConvLayerTest, RefusesInOneSentence) {
  const auto dispatcher = ConvDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(dispatcher);
  ConvSizes sizes = sizes_of_layer(ConvOperation::kForward);
  const ConvProblem problem = *ConvProblem::create(sizes);
  const auto layer = (*dispatcher)->layer(problem);
  ASSERT_TRUE(layer);
  const auto data = data_of(problem, 1);
  const CpuConvOperands operands{.input = data->input(), .result = data->result().data()};
  const Status unpacked = (*layer)->run(operands);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().message, "there are neither weights nor packed ones");
  EXPECT_EQ((*layer)->pack(nullptr).error().code, ErrorCode::kInvalidArgument);
  pack(**layer, *data);
  EXPECT_TRUE((*layer)->run(operands));
  EXPECT_EQ((*layer)->run({.result = data->result().data()}).error().message,
            "a tensor of the convolution is missing");
  sizes.dtype = DataType::kF64;
  const auto refused = (*dispatcher)->layer(*ConvProblem::create(sizes));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("cpu-conv computes in f32"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace foretune
