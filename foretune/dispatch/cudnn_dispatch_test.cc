// Convolutions by the dispatcher of cuDNN, with the library that tests/fake_gpu plays.
#include "foretune/dispatch/cudnn_dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "foretune/dispatch/testing/cudnn.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kSplit = 17;

FakeCudnn& fake() { return FakeCudnn::get(); }

// Has a model of another device, since those shipped may be for the fake's.
std::unique_ptr<CudnnDispatcher> heuristic_only() {
  return open_cudnn(
      {.models = {cudnn_model(sample_conv_predictions(), {.isa = "sm_100 cudnn-9.19"})}});
}

TEST(CudnnDispatchTest, TheShippedModelsMayBeAsked) {
  const auto dispatcher = open_cudnn({});
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    EXPECT_FALSE(run(*dispatcher, {.sizes = sample_conv(operation)})->text().empty());
  }
}

TEST(CudnnDispatchTest, RunsTheModelsPick) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    for (const DataType dtype :
         {DataType::kBf16, DataType::kF16, DataType::kF32, DataType::kTf32}) {
      for (const ConvLayout layout : {ConvLayout::kChannelsLast, ConvLayout::kChannelsFirst}) {
        const auto plan = run(*dispatcher, {.sizes = sample_conv(operation, dtype, layout)});
        EXPECT_EQ(plan->engine(), 4);
        EXPECT_EQ(plan->source(), ChoiceSource::kModel);
        EXPECT_EQ(plan->text(), "model: engine=4");
      }
    }
  }
}

TEST(CudnnDispatchTest, DimensionsAndGroupsReachTheLibrary) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  ConvSizes line{.n = 2, .c = 8, .k = 12, .g = 4, .wi = 19, .x = 5, .stride_w = 2, .pad_w = 2};
  ConvSizes body{.n = 1,
                 .c = 4,
                 .k = 6,
                 .di = 4,
                 .hi = 5,
                 .wi = 6,
                 .z = 3,
                 .y = 2,
                 .x = 3,
                 .stride_w = 2,
                 .pad_d = 1,
                 .dilation_h = 2};
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    line.operation = body.operation = operation;
    EXPECT_EQ(run(*dispatcher, {.sizes = line})->engine(), 4);
    EXPECT_EQ(run(*dispatcher, {.sizes = body})->engine(), 4);
  }
}

TEST(CudnnDispatchTest, APlanIsMadeOnce) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  const CudnnCall call{.sizes = sample_conv()};
  const auto first = run(*dispatcher, call);
  EXPECT_EQ(run(*dispatcher, call), first);
  CudnnCall other = call;
  other.sizes.n = 3;
  EXPECT_NE(run(*dispatcher, other), first);
  other = call;
  other.deterministic = true;
  EXPECT_NE(run(*dispatcher, other), first);
  EXPECT_EQ(run(*dispatcher, call), first);
}

TEST(CudnnDispatchTest, PlansAreBoundedAndMayOutliveBeingForgotten) {
  const auto dispatcher = open_cudnn(
      {.models = {cudnn_model(sample_conv_predictions())}, .dispatch = {.max_problems = 2}});
  CudnnCall call{.sizes = sample_conv()};
  const auto first = *dispatcher->prepare(call);
  const ConvSample sample(call.sizes);
  for (call.sizes.n = 3; call.sizes.n < 6; ++call.sizes.n) {
    EXPECT_TRUE(dispatcher->prepare(call));
  }
  call.sizes.n = 2;
  EXPECT_NE(*dispatcher->prepare(call), first);
  sample.poison();
  EXPECT_EQ(dispatcher->run(*first, fake().library->handle(), nullptr, sample.operands(), 0), 0);
  sample.check();
}

TEST(CudnnDispatchTest, TheHeuristicChoosesWhereTheModelCannot) {
  const auto plan = run(*heuristic_only(), {.sizes = sample_conv()});
  EXPECT_EQ(plan->source(), ChoiceSource::kHeuristic);
  EXPECT_EQ(plan->text(),
            "heuristic: rank 1 of a: engine=1 tile_size=2 stages=1; the model is for sm_100 with "
            "cuDNN 9.19, and this is sm_90 with cuDNN 9.19");
  const auto small =
      open_cudnn({.models = {cudnn_model(sample_conv_predictions(), {.most_log2_n = 2})}});
  EXPECT_EQ(run(*small, {.sizes = sample_conv()})->source(), ChoiceSource::kModel);
  ConvSizes large = sample_conv();
  large.n = 4;
  const auto outside = run(*small, {.sizes = large});
  EXPECT_EQ(outside->source(), ChoiceSource::kHeuristic);
  EXPECT_EQ(outside->engine(), 1);
  EXPECT_THAT(outside->text(), HasSubstr("outside of what the model was trained on"));
}

TEST(CudnnDispatchTest, EachDirectionHasTheModelThatKnowsIt) {
  const auto dispatcher = open_cudnn(
      {.models = {
           cudnn_model({{engine_config(0), 5}}, {.operation = ConvOperation::kForward}),
           cudnn_model({{engine_config(4), 5}}, {.operation = ConvOperation::kBackwardData})}});
  EXPECT_EQ(run(*dispatcher, {.sizes = sample_conv()})->engine(), 0);
  EXPECT_EQ(run(*dispatcher, {.sizes = sample_conv(ConvOperation::kBackwardData)})->engine(), 4);
  const auto without = run(*dispatcher, {.sizes = sample_conv(ConvOperation::kBackwardWeight)});
  EXPECT_EQ(without->source(), ChoiceSource::kHeuristic);
}

TEST(CudnnDispatchTest, ModelsOfOtherVersionsAndDevicesAreNotFollowed) {
  const auto text = [](const std::string& isa) {
    const auto dispatcher =
        open_cudnn({.models = {cudnn_model(sample_conv_predictions(), {.isa = isa})}});
    return run(*dispatcher, {.sizes = sample_conv()})->text();
  };
  EXPECT_THAT(
      text("sm_90 cudnn-9.20"),
      HasSubstr("the model is for sm_90 with cuDNN 9.20, and this is sm_90 with cuDNN 9.19"));
  EXPECT_THAT(text("sm_100 cudnn-9.19"), HasSubstr("the model is for sm_100"));
  EXPECT_THAT(text("sm_90"), HasSubstr("of unknown version"));
}

TEST(CudnnDispatchTest, WhatTheLibraryRefusesIsPassedOver) {
  // Engine 6 is of another device, and 5 computes forward passes only.
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model(
                      {{engine_config(6), 5}, {engine_config(5), 6}, {engine_config(0), 7}})}});
  EXPECT_EQ(run(*dispatcher, {.sizes = sample_conv()})->engine(), 5);
  const auto plan = run(*dispatcher, {.sizes = sample_conv(ConvOperation::kBackwardData)});
  EXPECT_EQ(plan->engine(), 0);
  EXPECT_EQ(plan->source(), ChoiceSource::kModel);
  EXPECT_THAT(plan->text(), HasSubstr("the model's first is refused: "));
  const auto nothing = open_cudnn({.models = {cudnn_model({{engine_config(6), 5}})}});
  // The model ranks the library's answers, too, of which it knows nothing here.
  EXPECT_THAT(run(*nothing, {.sizes = sample_conv()})->text(),
              HasSubstr("model: rank 1 of a: engine=1"));
}

TEST(CudnnDispatchTest, TheModelRanksTheLibrarysAnswersTogetherWithItsPool) {
  // Engine 2 is A's second answer, with knobs that the pool does not have.
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model({{engine_config(2, {{kSplit, 64}}), 5},
                                          {CudnnConfig::ranked(CudnnHeuristic::kA, 2), 4},
                                          {engine_config(0), 6}})}});
  EXPECT_THAT(run(*dispatcher, {.sizes = sample_conv()})->text(),
              HasSubstr("model: rank 2 of a: engine=2"));
}

TEST(CudnnDispatchTest, ThePlanFitsTheWorkspaceAndTheDemandForDeterminism) {
  const auto dispatcher = open_cudnn(
      {.models = {cudnn_model({{engine_config(2, {{kSplit, 8}}), 5}, {engine_config(4), 6}})}});
  CudnnCall call{.sizes = sample_conv()};
  const auto split = run(*dispatcher, call);
  EXPECT_EQ(split->engine(), 2);
  EXPECT_FALSE(split->is_deterministic());
  EXPECT_EQ(split->workspace_bytes(), 2U * 24 * 7 * 6 * 4 * 8);
  call.workspace_bytes = split->workspace_bytes() - 1;
  EXPECT_LE(run(*dispatcher, call)->workspace_bytes(), call.workspace_bytes);
  call.workspace_bytes = 0;
  EXPECT_EQ(run(*dispatcher, call)->engine(), 4);
  call.workspace_bytes = split->workspace_bytes();
  call.deterministic = true;
  const auto plan = run(*dispatcher, call);
  EXPECT_EQ(plan->engine(), 4);
  EXPECT_TRUE(plan->is_deterministic());
}

TEST(CudnnDispatchTest, EnginesThatCompileAreForThoseWhoWantThem) {
  const Model model = cudnn_model({{engine_config(3), 5}, {engine_config(0), 6}});
  const auto plan = run(*open_cudnn({.models = {model}}), {.sizes = sample_conv()});
  EXPECT_EQ(plan->engine(), 0);
  EXPECT_THAT(plan->text(), HasSubstr("engine 3 compiles its kernel"));
  EXPECT_EQ(
      run(*open_cudnn({.models = {model}, .compiles = true}), {.sizes = sample_conv()})->engine(),
      3);
  // The heuristic's own choice compiles as it would without us: in f32 it is engine 3.
  const ConvSizes f32 = sample_conv(ConvOperation::kForward, DataType::kF32);
  EXPECT_EQ(run(*heuristic_only(), {.sizes = f32})->engine(), 3);
  const auto ranked =
      open_cudnn({.models = {cudnn_model({{CudnnConfig::ranked(CudnnHeuristic::kA, 1), 5}})}});
  EXPECT_EQ(run(*ranked, {.sizes = f32})->engine(), 3);
}

TEST(CudnnDispatchTest, AMarginIsOverWhatTheModelSaysOfTheHeuristicsFirst) {
  // The config behind rank 1 is engine 1; the mean of both scores is 8.65.
  const auto with_margin = [](double margin) {
    const auto dispatcher =
        open_cudnn({.models = {cudnn_model({{CudnnConfig::ranked(CudnnHeuristic::kA, 1), 9.0},
                                            {engine_config(1), 8.3},
                                            {engine_config(4), 8.0}})},
                    .dispatch = {.margin = margin}});
    return run(*dispatcher, {.sizes = sample_conv()});
  };
  EXPECT_EQ(with_margin(0.6)->engine(), 4);
  const auto first = with_margin(0.7);
  EXPECT_EQ(first->source(), ChoiceSource::kHeuristic);
  EXPECT_THAT(first->text(), HasSubstr("margin of 0.7"));
}

TEST(CudnnDispatchTest, ARefusalToRunChoosesAnotherPlan) {
  const auto dispatcher = open_cudnn(
      {.models = {cudnn_model({{engine_config(4, {{60, 1}}), 5}, {engine_config(0), 6}})}});
  const CudnnCall call{.sizes = sample_conv()};
  const ConvSample sample(call.sizes);
  // Plans with this knob refuse to run while their stream captures, and lose the capture.
  auto& driver = fake().device->api();
  cuda::Stream stream = fake().device->stream();
  ASSERT_EQ(driver.begin_capture(stream, 1), 0);
  EXPECT_EQ(dispatcher->convolve(call, fake().library->handle(), sample.operands()),
            cudnn::kExecutionFailed);  // of the other plan, too, now
  cuda::Graph graph = nullptr;
  EXPECT_NE(driver.end_capture(stream, &graph), 0);
  const auto plan = *dispatcher->prepare(call);
  EXPECT_EQ(plan->source(), ChoiceSource::kHeuristic);
  EXPECT_THAT(plan->text(), HasSubstr("the library refused the model's choice when it ran"));
  sample.poison();
  EXPECT_EQ(dispatcher->convolve(call, fake().library->handle(), sample.operands()), 0);
  sample.check();
}

TEST(CudnnDispatchTest, AKnownPlanAsksTheLibraryNothing) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  const CudnnCall call{.sizes = sample_conv()};
  const auto before = run(*dispatcher, call);
  const ScopedFaults faults("refuse:5004");
  EXPECT_EQ(run(*dispatcher, call), before);
  CudnnCall other = call;
  other.sizes.n = 3;
  EXPECT_EQ(run(*dispatcher, other)->engine(), 0);
}

TEST(CudnnDispatchTest, WithoutAHandleThereIsOneOfOurOwn) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  const CudnnCall call{.sizes = sample_conv()};
  const auto plan = *dispatcher->prepare(call);
  const ConvSample sample(call.sizes);
  for (int i = 0; i < 3; ++i) {
    sample.poison();
    EXPECT_EQ(dispatcher->run(*plan, nullptr, fake().device->stream(), sample.operands(),
                              kSampleWorkspace),
              0);
    sample.check();
  }
}

TEST(CudnnDispatchTest, WrongArgumentsRunNothing) {
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model({{engine_config(2, {{kSplit, 2}}), 5}})}});
  const CudnnCall call{.sizes = sample_conv()};
  const auto plan = *dispatcher->prepare(call);
  const ConvSample sample(call.sizes);
  const auto handle = fake().library->handle();
  cudnn::ConvOperands operands = sample.operands();
  operands.workspace = nullptr;
  EXPECT_EQ(dispatcher->run(*plan, handle, nullptr, operands, kSampleWorkspace),
            cudnn::kBadParameter);
  operands = sample.operands();
  operands.input = static_cast<const char*>(operands.input) + 8;
  EXPECT_EQ(dispatcher->run(*plan, handle, nullptr, operands, kSampleWorkspace),
            cudnn::kBadParameter);
  EXPECT_EQ(dispatcher->convolve(call, nullptr, sample.operands()), cudnn::kBadParameter);
  CudnnCall wrong = call;
  wrong.sizes.y = 99;
  EXPECT_EQ(dispatcher->convolve(wrong, handle, sample.operands()), cudnn::kBadParameter);
  wrong = call;
  wrong.sizes.dtype = DataType::kI8;
  EXPECT_EQ(dispatcher->convolve(wrong, handle, sample.operands()), cudnn::kNotSupported);
  wrong = call;
  wrong.sizes.pad_d = 1;
  EXPECT_EQ(dispatcher->prepare(wrong).error().code, ErrorCode::kUnsupported);
  wrong = call;
  wrong.sizes.epilogue = ConvEpilogue::kBias;
  EXPECT_EQ(dispatcher->prepare(wrong).error().code, ErrorCode::kUnsupported);
}

TEST(CudnnDispatchTest, OtherModelsAndMissingLibrariesAreRefused) {
  EXPECT_FALSE(CudnnDispatcher::open({.cudnn = {"libno-such.so.9"}}));
  Model other = cudnn_model(sample_conv_predictions());
  other.config_schema.name = "another";
  const auto refused = CudnnDispatcher::open({.models = {other}, .cudnn = {FORETUNE_FAKE_GPU}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
}

TEST(CudnnDispatchTest, ThreadsShareAPlan) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())}});
  const ConvSample sample(sample_conv());
  sample.poison();
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      fake().device->make_current();
      for (int i = 0; i < 20; ++i) {
        CudnnCall call{.sizes = sample_conv()};
        if (t % 2 == 1 && i % 2 == 1) {
          call.sizes.n = 3 + i;  // only prepared
          failed += dispatcher->prepare(call) ? 0 : 1;
          continue;
        }
        const auto plan = dispatcher->prepare(call);
        failed += plan && dispatcher->run(**plan, nullptr, fake().device->stream(),
                                          sample.operands(), kSampleWorkspace) == 0
                      ? 0
                      : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failed, 0);
  sample.check();
}

}  // namespace
}  // namespace foretune
