// The C interface of cuDNN's dispatcher.
#include "foretune/dispatch/cudnn_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dispatch/testing/cudnn.h"
#include "foretune/model/model_file.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::TemporaryFolder;

foretune_cudnn_options fake_options() {
  FakeCudnn::get();
  foretune_cudnn_options options = {};
  options.cudnn_library = FORETUNE_FAKE_GPU;
  options.driver_library = FORETUNE_FAKE_GPU;
  return options;
}

// The problem of sample_conv().
foretune_cudnn_problem sample_problem(int operation = FORETUNE_CUDNN_FORWARD) {
  foretune_cudnn_problem problem = {};
  problem.operation = operation;
  problem.type = 9;
  problem.channels_last = 1;
  problem.spatial = 2;
  problem.batch = 2;
  problem.channels = 16;
  problem.filters = 24;
  problem.groups = 1;
  problem.input[0] = 7;
  problem.input[1] = 6;
  for (int i = 0; i < 2; ++i) {
    problem.filter[i] = 3;
    problem.padding[i] = problem.stride[i] = problem.dilation[i] = 1;
  }
  return problem;
}

int convolve(foretune_cudnn* foretune, const foretune_cudnn_problem& problem,
             const ConvSample& sample, std::size_t workspace_bytes) {
  const cudnn::ConvOperands operands = sample.operands();
  return foretune_cudnn_convolution(foretune, FakeCudnn::get().library->handle(), &problem,
                                    operands.input, operands.weights, operands.output,
                                    operands.workspace, workspace_bytes);
}

std::string explain(foretune_cudnn* foretune, const foretune_cudnn_problem& problem) {
  std::array<char, 512> text{};
  const std::size_t length = foretune_cudnn_explain(foretune, &problem, text.data(), text.size());
  EXPECT_EQ(std::string(text.data()).size(), length);
  return text.data();
}

class CudnnConvolutionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_.path() / "model.ftm";
    ASSERT_TRUE(
        write_model(cudnn_model({{engine_config(2, {{17, 8}}), 5}, {engine_config(4), 6}}), path));
    foretune_cudnn_options options = fake_options();
    options.model_path = path.c_str();
    std::array<char, 256> message{};
    ASSERT_EQ(foretune_cudnn_open_with(&options, &foretune_, message.data(), message.size()),
              FORETUNE_CUDNN_OK)
        << message.data();
  }
  void TearDown() override { foretune_cudnn_close(foretune_); }

  TemporaryFolder folder_;
  foretune_cudnn* foretune_ = nullptr;
};

TEST_F(CudnnConvolutionTest, ConvolvesWithTheModelOfAFile) {
  for (int operation = 0; operation < 3; ++operation) {
    const foretune_cudnn_problem problem = sample_problem(operation);
    const ConvSample sample(sample_conv(static_cast<ConvOperation>(operation)));
    std::size_t bytes = 0;
    ASSERT_EQ(foretune_cudnn_workspace(foretune_, &problem, &bytes), FORETUNE_CUDNN_OK);
    EXPECT_GT(bytes, 0U);
    EXPECT_EQ(explain(foretune_, problem), "model: engine=2 split_k_slc=8");
    for (const std::size_t given : {bytes, bytes - 1, std::size_t{0}}) {
      sample.poison();
      EXPECT_EQ(convolve(foretune_, problem, sample, given), 0);
      sample.check();
    }
  }
}

TEST_F(CudnnConvolutionTest, APlanOfOnesOwnRunsWithoutAHandle) {
  const foretune_cudnn_problem problem = sample_problem();
  const ConvSample sample(sample_conv());
  foretune_cudnn_plan* plan = nullptr;
  ASSERT_EQ(foretune_cudnn_prepare(foretune_, &problem, &plan, nullptr, 0), FORETUNE_CUDNN_OK);
  const foretune_cudnn_facts facts = foretune_cudnn_plan_facts(plan);
  EXPECT_EQ(facts.engine, 2);
  EXPECT_EQ(facts.deterministic, 0);
  EXPECT_EQ(facts.is_models_pick, 1);
  EXPECT_EQ(facts.is_settled, 1);
  EXPECT_EQ(facts.workspace_bytes, 2U * 24 * 7 * 6 * 4 * 8);
  std::array<char, 8> cut{};
  EXPECT_GT(foretune_cudnn_plan_text(plan, cut.data(), cut.size()), cut.size());
  EXPECT_STREQ(cut.data(), "model: ");
  // It outlives what it was made with.
  foretune_cudnn_close(foretune_);
  foretune_ = nullptr;
  const cudnn::ConvOperands operands = sample.operands();
  sample.poison();
  EXPECT_EQ(foretune_cudnn_run(plan, nullptr, FakeCudnn::get().device->stream(), operands.input,
                               operands.weights, operands.output, operands.workspace,
                               facts.workspace_bytes),
            0);
  sample.check();
  EXPECT_EQ(foretune_cudnn_run(plan, nullptr, nullptr, operands.input, operands.weights,
                               operands.output, nullptr, facts.workspace_bytes),
            2000);
  EXPECT_EQ(foretune_cudnn_run(plan, nullptr, nullptr, operands.input, operands.weights,
                               operands.output, operands.workspace, facts.workspace_bytes - 1),
            2000);
  foretune_cudnn_release(plan);
  foretune_cudnn_release(nullptr);
}

TEST_F(CudnnConvolutionTest, RefusesWrongArguments) {
  const ConvSample sample(sample_conv());
  const foretune_cudnn_problem good = sample_problem();
  EXPECT_EQ(convolve(nullptr, good, sample, 0), 2000);
  EXPECT_EQ(
      foretune_cudnn_convolution(foretune_, nullptr, &good, nullptr, nullptr, nullptr, nullptr, 0),
      2000);
  std::size_t bytes = 1;
  EXPECT_EQ(foretune_cudnn_workspace(foretune_, nullptr, &bytes), FORETUNE_CUDNN_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, 0U);
  EXPECT_EQ(foretune_cudnn_workspace(foretune_, &good, nullptr), FORETUNE_CUDNN_INVALID_ARGUMENT);
  const auto refuse = [&](auto change, const char* reason) {
    foretune_cudnn_problem problem = good;
    change(problem);
    EXPECT_EQ(convolve(foretune_, problem, sample, kSampleWorkspace), 2000);
    EXPECT_EQ(explain(foretune_, problem), "");
    foretune_cudnn_plan* plan = nullptr;
    std::array<char, 256> message{};
    EXPECT_EQ(foretune_cudnn_prepare(foretune_, &problem, &plan, message.data(), message.size()),
              FORETUNE_CUDNN_INVALID_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    EXPECT_THAT(message.data(), HasSubstr(reason));
  };
  refuse([](auto& problem) { problem.operation = 3; }, "an operation is 0, 1 or 2, not 3");
  refuse([](auto& problem) { problem.type = 1; }, "a type is 0, 2 or 9, not 1");
  refuse([](auto& problem) { problem.spatial = 0; }, "1 to 3 spatial dimensions");
  refuse([](auto& problem) { problem.spatial = 4; }, "1 to 3 spatial dimensions");
  refuse([](auto& problem) { problem.groups = 3; }, "g");
  refuse([](auto& problem) { problem.stride[1] = 0; }, "stride_w");
  refuse([](auto& problem) { problem.filter[0] = 10; }, "does not fit");
}

TEST(CudnnOpenTest, SaysWhyItCannotOpen) {
  const TemporaryFolder folder;
  foretune_cudnn_options options = fake_options();
  foretune_cudnn* foretune = nullptr;
  std::array<char, 256> message{};
  const auto open = [&] {
    return foretune_cudnn_open_with(&options, &foretune, message.data(), message.size());
  };
  EXPECT_EQ(foretune_cudnn_open_with(&options, nullptr, nullptr, 0),
            FORETUNE_CUDNN_INVALID_ARGUMENT);
  const std::string missing = folder.path() / "missing.ftm";
  options.model_path = missing.c_str();
  EXPECT_EQ(open(), FORETUNE_CUDNN_NOT_FOUND);
  EXPECT_THAT(message.data(), HasSubstr("missing.ftm"));
  EXPECT_EQ(foretune, nullptr);
  EXPECT_EQ(foretune_cudnn_open(missing.c_str(), &foretune), FORETUNE_CUDNN_NOT_FOUND);
  const std::string damaged = folder.path() / "damaged.ftm";
  ASSERT_TRUE(write_file_atomically(damaged, bytes_of("not a model")));
  options.model_path = damaged.c_str();
  EXPECT_EQ(open(), FORETUNE_CUDNN_CORRUPT);
  options.model_path = nullptr;
  options.margin = -1;
  EXPECT_EQ(open(), FORETUNE_CUDNN_INVALID_ARGUMENT);
  options.margin = 0;
  options.trial_share = 1.5;
  EXPECT_EQ(open(), FORETUNE_CUDNN_INVALID_ARGUMENT);
  EXPECT_THAT(message.data(), HasSubstr("a share is a number from 0 to 1, not 1.5"));
  options.trial_share = 0;
  options.cudnn_library = "libnothing-like-it.so";
  EXPECT_EQ(open(), FORETUNE_CUDNN_UNSUPPORTED);
  EXPECT_THAT(message.data(), HasSubstr("libnothing-like-it.so"));
}

TEST_F(CudnnConvolutionTest, TrialsOfOneProcessAreChoicesOfTheNext) {
  const std::string model = folder_.path() / "model.ftm";
  const std::string trials = folder_.path() / "trials.ftd";
  std::array<char, 256> message{};
  EXPECT_EQ(foretune_cudnn_save(foretune_, message.data(), message.size()),
            FORETUNE_CUDNN_INVALID_ARGUMENT);
  EXPECT_STREQ(message.data(), "no file was given for trials");
  foretune_cudnn_options options = fake_options();
  options.model_path = model.c_str();
  options.measure_top = 3;
  options.workspace_limit = kSampleWorkspace;
  options.trials_path = trials.c_str();
  const foretune_cudnn_problem problem = sample_problem();
  const ConvSample sample(sample_conv());
  std::string measured;
  for (const char* const source : {"measured: ", "remembered: "}) {
    foretune_cudnn* opened = nullptr;
    ASSERT_EQ(foretune_cudnn_open_with(&options, &opened, message.data(), message.size()),
              FORETUNE_CUDNN_OK)
        << message.data();
    for (int call = 0; call < 20; ++call) {
      sample.poison();
      EXPECT_EQ(convolve(opened, problem, sample, kSampleWorkspace), 0);
      sample.check();
    }
    foretune_cudnn_plan* plan = nullptr;
    ASSERT_EQ(foretune_cudnn_prepare(opened, &problem, &plan, nullptr, 0), FORETUNE_CUDNN_OK);
    std::array<char, 256> text{};
    foretune_cudnn_plan_text(plan, text.data(), text.size());
    EXPECT_THAT(text.data(), StartsWith(source));
    const std::string config = std::string(text.data()).substr(std::string(source).size());
    EXPECT_EQ(measured.empty() ? config : measured, config);
    measured = config;
    foretune_cudnn_release(plan);
    EXPECT_EQ(foretune_cudnn_save(opened, message.data(), message.size()), FORETUNE_CUDNN_OK)
        << message.data();
    foretune_cudnn_close(opened);
  }
}

TEST(CudnnOpenTest, AModelOfAnotherDeviceIsNotFollowed) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "model.ftm";
  ASSERT_TRUE(
      write_model(cudnn_model(sample_conv_predictions(), {.isa = "sm_100 cudnn-9.19"}), path));
  foretune_cudnn_options options = fake_options();
  options.model_path = path.c_str();
  foretune_cudnn* foretune = nullptr;
  ASSERT_EQ(foretune_cudnn_open_with(&options, &foretune, nullptr, 0), FORETUNE_CUDNN_OK);
  const ConvSample sample(sample_conv());
  EXPECT_EQ(convolve(foretune, sample_problem(), sample, kSampleWorkspace), 0);
  sample.check();
  EXPECT_THAT(explain(foretune, sample_problem()), StartsWith("heuristic: rank 1 of a: engine=1"));
  foretune_cudnn_close(foretune);
  foretune_cudnn_close(nullptr);
}

}  // namespace
}  // namespace foretune
