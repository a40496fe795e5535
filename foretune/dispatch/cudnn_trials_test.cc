// Tests the trials of cuDNN's dispatcher, which events of the faked driver time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/cuda/event_clock.h"
#include "foretune/dispatch/cudnn_dispatch.h"
#include "foretune/dispatch/testing/cudnn.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kSplitKnob = 17;

// Prefers engine 0, which is the slowest, to 4 and to the heuristic's first, engine 1.
std::vector<ConvPrediction> wrong_predictions() {
  return {{engine_config(0), 7},
          {engine_config(4), 8},
          {CudnnConfig::ranked(CudnnHeuristic::kA, 1), 9}};
}

// Large enough for the engines' times to differ.
CudnnCall large_call() {
  CudnnCall call{.sizes = sample_conv()};
  call.sizes.n = 4;
  call.sizes.c = call.sizes.k = 32;
  call.sizes.hi = call.sizes.wi = 4;
  return call;
}

// Runs a plan until it is settled or `most` runs are over; returns how many there were.
int settle(CudnnDispatcher& dispatcher, const CudnnCall& call, int most = 100) {
  const auto plan = *dispatcher.prepare(call);
  const ConvSample sample(call.sizes);
  int runs = 0;
  while (!plan->is_settled() && runs < most) {
    sample.poison();
    EXPECT_EQ(dispatcher.run(*plan, FakeCudnn::get().library->handle(), nullptr, sample.operands(),
                             kSampleWorkspace),
              0);
    sample.check();
    ++runs;
  }
  return runs;
}

double nanoseconds_of(const CudnnConfig& config, const CudnnCall& call) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model({{config, 1}})}, .compiles = true});
  const auto plan = *dispatcher->prepare(call);
  EXPECT_EQ(plan->engine(), config.engine);
  const ConvSample sample(call.sizes);
  const cuda::EventClock clock(cuda::DriverApi::load(FORETUNE_FAKE_GPU).value());
  const auto run = [&] {
    EXPECT_EQ(dispatcher->run(*plan, nullptr, nullptr, sample.operands(), kSampleWorkspace), 0);
  };
  run();  // the fake's caches are cold then
  const auto span = clock.begin(nullptr);
  run();
  EXPECT_TRUE(span && clock.end(*span, nullptr));
  return **clock.read(*span);
}

TEST(CudnnTrialsTest, FindTheFastestWithoutWaiting) {
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model(wrong_predictions())}, .dispatch = {.measure_top = 3}});
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  EXPECT_FALSE(plan->is_settled());
  EXPECT_EQ(plan->text(), "model: engine=0; trials go on");
  {
    const ScopedFaults faults("busy");
    EXPECT_EQ(settle(*dispatcher, call, 20), 20);
  }
  // Their work ends and turns out to be short: few more calls time it again.
  EXPECT_LE(settle(*dispatcher, call), 5);
  EXPECT_EQ(plan->source(), ChoiceSource::kMeasured);
  EXPECT_EQ(*dispatcher->prepare(call), plan);
  const double of_0 = nanoseconds_of(engine_config(0), call);
  const double of_4 = nanoseconds_of(engine_config(4), call);
  const double of_1 = nanoseconds_of(engine_config(1, {{2, 2}, {14, 1}}), call);
  EXPECT_LT(of_4, of_0);
  EXPECT_EQ(plan->engine(), of_1 < of_4 ? 1 : 4);
}

TEST(CudnnTrialsTest, TheHeuristicsFirstTakesPart) {
  // The model knows three configs, all slower than the first of A.
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model({{engine_config(0), 7},
                                          {engine_config(2, {{kSplitKnob, 16}}), 8},
                                          {engine_config(5), 9}})},
                  .dispatch = {.measure_top = 3}});
  const CudnnCall call{.sizes = sample_conv()};
  settle(*dispatcher, call);
  const auto plan = *dispatcher->prepare(call);
  EXPECT_THAT(plan->text(), HasSubstr("measured: rank 1 of a: engine=1"));
}

TEST(CudnnTrialsTest, APickWithinTheMarginRunsLater) {
  const auto dispatcher = open_cudnn({.models = {cudnn_model(sample_conv_predictions())},
                                      .dispatch = {.measure_top = 3, .margin = 5}});
  const CudnnCall call = large_call();
  EXPECT_THAT((*dispatcher->prepare(call))->text(), HasSubstr("heuristic: rank 1 of a"));
  EXPECT_GT(settle(*dispatcher, call), 3);
  EXPECT_EQ((*dispatcher->prepare(call))->source(), ChoiceSource::kMeasured);
}

TEST(CudnnTrialsTest, CapturedRunsAreNoTrials) {
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model(wrong_predictions())}, .dispatch = {.measure_top = 3}});
  const auto driver = cuda::DriverApi::load(FORETUNE_FAKE_GPU).value();
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  const ConvSample sample(call.sizes);
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  ASSERT_EQ(driver->stream_create(&stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(driver->begin_capture(stream, cuda::kCaptureThreadLocal), 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(dispatcher->run(*plan, nullptr, stream, sample.operands(), plan->workspace_bytes()),
              0);
  }
  ASSERT_EQ(driver->end_capture(stream, &graph), 0);
  EXPECT_FALSE(plan->is_settled());
  EXPECT_EQ(plan->engine(), 0);
  driver->graph_destroy(graph);
  driver->stream_destroy(stream);
  EXPECT_GT(settle(*dispatcher, call), 3);
  EXPECT_TRUE(plan->is_settled());
}

TEST(CudnnTrialsTest, DeterministicCallsAreNoTrials) {
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model(wrong_predictions())}, .dispatch = {.measure_top = 3}});
  CudnnCall call = large_call();
  call.deterministic = true;
  const auto plan = *dispatcher->prepare(call);
  EXPECT_TRUE(plan->is_settled());
  EXPECT_EQ(plan->text(), "model: engine=0");
}

TEST(CudnnTrialsTest, AConfigThatNeedsMoreWorkspaceThanThereIsIsGivenUp) {
  const auto dispatcher = open_cudnn(
      {.models = {cudnn_model({{engine_config(2, {{kSplitKnob, 2}}), 7}, {engine_config(0), 8}})},
       .dispatch = {.measure_top = 3}});
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  const std::size_t needed = plan->workspace_bytes();
  EXPECT_GT(needed, 0U);
  const ConvSample sample(call.sizes);
  for (int i = 0; i < 20; ++i) {
    sample.poison();
    EXPECT_EQ(dispatcher->run(*plan, nullptr, nullptr, sample.operands(), needed - 1), 0);
    sample.check();
  }
  ASSERT_TRUE(plan->is_settled());
  EXPECT_LT(plan->workspace_bytes(), needed);
}

TEST(CudnnTrialsTest, AFewCallsOfShortWorkTryEverything) {
  for (const int engines : {3, 6}) {
    const auto dispatcher = open_cudnn(
        {.models = {cudnn_model(sample_conv_predictions())}, .dispatch = {.measure_top = engines}});
    const CudnnCall call{.sizes = sample_conv()};
    ASSERT_FALSE((*dispatcher->prepare(call))->is_settled());
    // The first engine alone, the others, four rounds of all, and their reports.
    EXPECT_LE(settle(*dispatcher, call), 7) << engines;
    EXPECT_EQ((*dispatcher->prepare(call))->source(), ChoiceSource::kMeasured);
  }
}

TEST(CudnnTrialsTest, TheLibrarysAnswersAreTriedWhereTheModelAbstains) {
  const auto dispatcher =
      open_cudnn({.models = {cudnn_model(sample_conv_predictions(), {.most_log2_n = 2})},
                  .dispatch = {.measure_top = 4}});
  CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  EXPECT_THAT(plan->text(), HasSubstr("heuristic: rank 1 of a"));
  EXPECT_THAT(plan->text(), HasSubstr("outside of what the model was trained on"));
  EXPECT_FALSE(plan->is_settled());
  settle(*dispatcher, call);
  EXPECT_THAT(plan->text(), HasSubstr("measured: rank "));
}

// Enough for trials of the fake, which are slow, and too little for them at once.
constexpr double kShare = 0.5;

CudnnDispatchOptions sharing_time(double share = kShare) {
  return {.models = {cudnn_model(wrong_predictions())},
          .trial_share = share,
          .dispatch = {.measure_top = 3}};
}

TEST(CudnnTrialsTest, TheHeuristicsFirstRunsUntilTrialsHaveTheirShare) {
  const auto dispatcher = open_cudnn(sharing_time());
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  EXPECT_FALSE(plan->is_settled());
  EXPECT_THAT(plan->text(), HasSubstr("heuristic: rank 1 of a: engine=1"));
  EXPECT_THAT(plan->text(), HasSubstr("; trials wait for their share of the time"));
  EXPECT_LT(settle(*dispatcher, call, 10'000), 10'000);
  EXPECT_EQ(plan->source(), ChoiceSource::kMeasured);
  const auto at_once =
      open_cudnn({.models = {cudnn_model(wrong_predictions())}, .dispatch = {.measure_top = 3}});
  settle(*at_once, call);
  EXPECT_EQ(plan->engine(), (*at_once->prepare(call))->engine());
}

TEST(CudnnTrialsTest, AShareThatIsSpentAllowsNoTrial) {
  const auto dispatcher = open_cudnn(sharing_time(1e-9));
  // The first convolution's engines take more than the share of an hour.
  for (int images = 1; images <= 4; ++images) {
    CudnnCall call = large_call();
    call.sizes.n = images;
    settle(*dispatcher, call, 30);
    const auto plan = *dispatcher->prepare(call);
    EXPECT_FALSE(plan->is_settled());
    EXPECT_THAT(plan->text(), HasSubstr("heuristic: rank 1 of a: engine=1"));
    EXPECT_THAT(plan->text(), HasSubstr(images == 1 ? "; trials go on"
                                                    : "; trials wait for their share of the time"));
  }
}

TEST(CudnnTrialsTest, FewConvolutionsAreOnTrialAtATime) {
  constexpr int kMostOpen = 4;
  const auto dispatcher = open_cudnn(sharing_time(0.99));
  std::vector<CudnnCall> calls;
  for (int images = 1; images <= 8; ++images) {
    calls.push_back({.sizes = sample_conv()});
    calls.back().sizes.n = images;
  }
  int settled = 0;
  double last = monotonic_s();
  double longest_pause = 0;
  for (int round = 0; settled < 8; ++round) {
    ASSERT_LT(round, 10'000);
    int open = 0;
    settled = 0;
    for (const CudnnCall& call : calls) {
      settle(*dispatcher, call, 1);
      longest_pause = std::max(longest_pause, monotonic_s() - last);
      last = monotonic_s();
      const auto plan = *dispatcher->prepare(call);
      settled += plan->is_settled() ? 1 : 0;
      open += plan->text().ends_with("; trials go on") ? 1 : 0;
    }
    // After a second without trials those that are open count as forgotten.
    if (longest_pause < 0.5) {
      EXPECT_LE(open, kMostOpen);
    }
  }
}

TEST(CudnnTrialsTest, WorkspaceGrowsBetweenRunsOnly) {
  CudnnDispatchOptions options = sharing_time();
  options.models = {cudnn_model({{engine_config(2, {{kSplitKnob, 2}}), 7}, {engine_config(0), 8}})};
  const auto dispatcher = open_cudnn(std::move(options));
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  const std::size_t of_first = plan->workspace_bytes();
  const ConvSample sample(call.sizes);
  std::size_t most = 0;
  while (!plan->is_settled()) {
    sample.poison();
    const std::size_t asked = plan->workspace_bytes();
    ASSERT_EQ(dispatcher->run(*plan, nullptr, nullptr, sample.operands(), asked), 0);
    sample.check();
    most = std::max(most, asked);
  }
  EXPECT_GT(most, of_first);
  EXPECT_EQ(plan->source(), ChoiceSource::kMeasured);
}

TEST(CudnnTrialsTest, CapturesBeforeTrialsHoldTheHeuristicsFirst) {
  const auto dispatcher = open_cudnn(sharing_time());
  const auto driver = cuda::DriverApi::load(FORETUNE_FAKE_GPU).value();
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  const ConvSample sample(call.sizes);
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  ASSERT_EQ(driver->stream_create(&stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(driver->begin_capture(stream, cuda::kCaptureThreadLocal), 0);
  EXPECT_EQ(dispatcher->run(*plan, nullptr, stream, sample.operands(), kSampleWorkspace), 0);
  EXPECT_THAT(plan->text(), HasSubstr("; trials wait for their share of the time"));
  ASSERT_EQ(driver->end_capture(stream, &graph), 0);
  EXPECT_LT(settle(*dispatcher, call, 10'000), 10'000);
  cuda::GraphExec exec = nullptr;
  ASSERT_EQ(driver->graph_instantiate(&exec, graph, 0), 0);
  sample.poison();
  EXPECT_EQ(driver->graph_launch(exec, stream), 0);
  sample.check();
  driver->graph_exec_destroy(exec);
  driver->graph_destroy(graph);
  driver->stream_destroy(stream);
}

TEST(CudnnTrialsTest, DeterministicAndRememberedCallsWaitForNoTrials) {
  CudnnCall call = large_call();
  std::string choices;
  {
    const auto dispatcher = open_cudnn(sharing_time(1));
    settle(*dispatcher, call);
    choices = dispatcher->dispatcher().choices_text();
  }
  const auto dispatcher = open_cudnn(sharing_time(1e-9));
  ASSERT_TRUE(dispatcher->dispatcher().take_choices(choices));
  EXPECT_EQ((*dispatcher->prepare(call))->source(), ChoiceSource::kRemembered);
  call.deterministic = true;
  call.sizes.n = 3;
  EXPECT_EQ((*dispatcher->prepare(call))->text(), "model: engine=0");
}

TEST(CudnnTrialsTest, ThreadsShareTheTrials) {
  const auto dispatcher = open_cudnn(sharing_time());
  const CudnnCall call = large_call();
  const auto plan = *dispatcher->prepare(call);
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      FakeCudnn::get().device->make_current();
      const ConvSample sample(call.sizes);
      for (int i = 0; i < 40; ++i) {
        failed += dispatcher->run(*plan, nullptr, FakeCudnn::get().device->stream(),
                                  sample.operands(), kSampleWorkspace) == 0
                      ? 0
                      : 1;
        failed += plan->text().empty() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failed, 0);
  EXPECT_LT(settle(*dispatcher, call, 10'000), 10'000);
}

}  // namespace
}  // namespace foretune
