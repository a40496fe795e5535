#include "foretune/dispatch/conv_dispatch.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

using cpu_conv::ConvData;

ConvProblem layer(ConvOperation operation, ConvEpilogue epilogue = ConvEpilogue::kNone) {
  return *ConvProblem::create({.operation = operation,
                               .n = 2,
                               .c = 12,
                               .k = 20,
                               .g = 2,
                               .hi = 9,
                               .wi = 7,
                               .y = 3,
                               .x = 3,
                               .stride_h = 2,
                               .pad_h = 1,
                               .pad_w = 1,
                               .epilogue = epilogue});
}

// Runs a convolution on the data's tensors and compares the result with the definition.
void expect_right(ConvDispatcher& dispatcher, const ConvProblem& problem) {
  const auto data = ConvData::create(problem, 7, {});
  ASSERT_TRUE(data);
  const cpu_conv::ConvOperands operands = (*data)->operands();
  const Status ran = dispatcher.run(problem, {.input = (*data)->input(),
                                              .weights = (*data)->weights(),
                                              .output = (*data)->output(),
                                              .bias = operands.bias,
                                              .addend = operands.residual,
                                              .result = (*data)->result().data()});
  ASSERT_TRUE(ran) << ran.error().message;
  const Support right = (*data)->verify();
  EXPECT_TRUE(right) << right.reason();
}

TEST(ConvDispatchTest, ComputesThreeDirectionsAndEpilogues) {
  const auto dispatcher = ConvDispatcher::for_this_cpu({});
  ASSERT_TRUE(dispatcher) << dispatcher.error().message;
  for (const auto epilogue : {ConvEpilogue::kNone, ConvEpilogue::kBias, ConvEpilogue::kBiasRelu,
                              ConvEpilogue::kBiasAddRelu}) {
    expect_right(**dispatcher, layer(ConvOperation::kForward, epilogue));
  }
  expect_right(**dispatcher, layer(ConvOperation::kBackwardData));
  expect_right(**dispatcher, layer(ConvOperation::kBackwardWeight));
  const ConvProblem problem = layer(ConvOperation::kForward);
  EXPECT_EQ((*dispatcher)->run(problem, {}).error().code, ErrorCode::kInvalidArgument);
  const auto decision = (*dispatcher)->dispatcher().decision(problem.to_problem());
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->family, "cpu-conv");
}

TEST(ConvDispatchTest, TheShippedModelDecidesLayersOfNetworks) {
  const CpuFacts facts = read_cpu_facts();
  if (!default_cpu_model("cpu-conv", facts.isa, 1)) {
    GTEST_SKIP() << "there is no model for this instruction set";
  }
  const auto dispatcher = ConvDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(dispatcher) << dispatcher.error().message;
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    const ConvProblem problem = *ConvProblem::create({.operation = operation,
                                                      .c = 64,
                                                      .k = 64,
                                                      .hi = 28,
                                                      .wi = 28,
                                                      .y = 3,
                                                      .x = 3,
                                                      .pad_h = 1,
                                                      .pad_w = 1});
    const auto decision = (*dispatcher)->dispatcher().decision(problem.to_problem());
    ASSERT_TRUE(decision) << decision.error().message;
    EXPECT_EQ(decision->source, ChoiceSource::kModel) << decision->text();
    expect_right(**dispatcher, problem);
  }
}

// A data set of other configs, as `foretune tune` and `foretune collect` write them, decides.
TEST(ConvDispatchTest, FollowsWhatWasMeasuredBefore) {
  const testing_support::TemporaryFolder folder;
  const auto dispatcher = ConvDispatcher::for_this_cpu({.threads = 1});
  ASSERT_TRUE(dispatcher);
  const ConvProblem problem = layer(ConvOperation::kForward);
  const std::string head = (*dispatcher)->dispatcher().choices_text();
  const auto before = (*dispatcher)->dispatcher().decision(problem.to_problem());
  ASSERT_TRUE(before);
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  options.threads = 1;
  const auto family = create_cpu_conv(options);
  ASSERT_TRUE(family);
  const auto space = (*family)->space(problem.to_problem());
  ASSERT_TRUE(space);
  const std::vector<Config> others = (*space)->neighbours(before->config);
  ASSERT_FALSE(others.empty());
  const std::string config = to_text((*family)->info().config_schema, others.front());
  ASSERT_NE(config, before->config_text);
  const auto taken = (*dispatcher)
                         ->dispatcher()
                         .take_choices(head + "cpu-conv\t" + problem.to_problem().text() + "\t" +
                                       config + "\t1000\n");
  ASSERT_TRUE(taken) << taken.error().message;
  const auto after = (*dispatcher)->dispatcher().decision(problem.to_problem());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->source, ChoiceSource::kRemembered);
  EXPECT_EQ(after->config_text, config);
  expect_right(**dispatcher, problem);
}

}  // namespace
}  // namespace foretune
