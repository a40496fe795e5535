// Convolutions, models and NVIDIA's libraries (as tests/fake_gpu fakes them) for the tests of the
// cuDNN dispatcher. Not part of the library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/cuda/device.h"
#include "foretune/cudnn/conv_data.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/dispatch/cudnn_dispatch.h"
#include "foretune/dispatch/testing/one_tree_model.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

inline constexpr std::size_t kSampleWorkspace = std::size_t{1} << 22U;

// The fake library with a device and a handle; the process has one.
class FakeCudnn {
 public:
  static FakeCudnn& get() {
    static FakeCudnn fake;
    return fake;
  }

  std::shared_ptr<cuda::Device> device;
  std::shared_ptr<const cudnn::Library> library;
  void (*set_faults)(const char* faults) = nullptr;

 private:
  FakeCudnn() {
    device =
        cuda::Device::open({.driver = FORETUNE_FAKE_GPU, .nvml = FORETUNE_FAKE_GPU}, 0).value();
    library = cudnn::Library::open(cudnn::Api::load({FORETUNE_FAKE_GPU}).value(), device->stream())
                  .value();
    EXPECT_TRUE(cuda::SharedLibrary::open(FORETUNE_FAKE_GPU)
                    .value()
                    .find("foretune_fake_gpu_set_faults", set_faults));
  }
};

// Sets faults of the fake as long as it lives.
class ScopedFaults {
 public:
  explicit ScopedFaults(const char* faults) { FakeCudnn::get().set_faults(faults); }
  ~ScopedFaults() { FakeCudnn::get().set_faults(""); }
  ScopedFaults(const ScopedFaults&) = delete;
  ScopedFaults& operator=(const ScopedFaults&) = delete;
};

inline ConvSizes sample_conv(ConvOperation operation = ConvOperation::kForward,
                             DataType dtype = DataType::kBf16,
                             ConvLayout layout = ConvLayout::kChannelsLast) {
  return {.operation = operation,
          .n = 2,
          .c = 16,
          .k = 24,
          .hi = 7,
          .wi = 6,
          .y = 3,
          .x = 3,
          .pad_h = 1,
          .pad_w = 1,
          .dtype = dtype,
          .layout = layout};
}

// The operands of a convolution and its reference.
class ConvSample {
 public:
  explicit ConvSample(const ConvSizes& sizes)
      : data_(cudnn::ConvData::create(FakeCudnn::get().device, *ConvProblem::create(sizes),
                                      kSampleWorkspace, 5)
                  .value()) {}
  // Forgets the result.
  void poison() const { data_->poison(); }
  void check(bool is_transformed = false) const {
    data_->expect_transformed(is_transformed);
    const Support right = data_->verify();
    EXPECT_TRUE(right) << right.reason();
  }
  [[nodiscard]] cudnn::ConvOperands operands() const { return data_->operands(0); }

 private:
  std::unique_ptr<cudnn::ConvData> data_;
};

// A candidate and the time that the model predicts for it, ln ns, whatever the problem.
struct ConvPrediction {
  CudnnConfig config;
  double score = 0;
};

struct CudnnModelOptions {
  std::string isa = "sm_90 cudnn-9.19";
  double most_log2_n = 1e6;                // log2(1 + images) that were seen in training
  std::optional<ConvOperation> operation;  // the only one seen in training
};

// Makes a model of one tree that splits on the engine: candidates with the same engine share a
// score, and so do the heuristics' ranks, whose engine is -1.
// The score of engines about which a model was told nothing.
inline constexpr double kUnknownEngine = 12;

inline Model cudnn_model(const std::vector<ConvPrediction>& predictions,
                         const CudnnModelOptions& options = {}) {
  std::vector<ScoredConfig> candidates;
  for (const ConvPrediction& p : predictions) {
    candidates.push_back({p.config.to_config(), std::log2(1.5 + p.config.engine), p.score});
  }
  for (const ConvPrediction& p : predictions) {
    candidates.push_back({{}, std::log2(0.5 + std::max(0, p.config.engine)), kUnknownEngine});
  }
  candidates.push_back({{}, 1e300, kUnknownEngine});
  Model model =
      one_tree_model(kConvProblem, "conv-cudnn-plain", "config_log2_engine", std::move(candidates));
  model.family = "cudnn";
  model.config_schema = cudnn_schema();
  model.space_text = cudnn_space().text();
  model.fingerprint.isa = options.isa;
  set_problem_range(model, "log2_n", {-1e300, options.most_log2_n});
  if (options.operation) {
    const auto number = static_cast<double>(*options.operation);
    set_problem_range(model, "op", {number, number});
  }
  return model;
}

inline CudnnConfig engine_config(
    std::int32_t engine, const std::vector<std::pair<std::int32_t, std::int32_t>>& knobs = {}) {
  CudnnConfig config = CudnnConfig::of_engine(engine);
  for (const auto& [type, value] : knobs) {
    EXPECT_TRUE(config.set_knob(type, value));
  }
  return config;
}

// Prefers engine 4 to 0 and both to the heuristic's first, which is engine 1 for 16 bits.
inline std::vector<ConvPrediction> sample_conv_predictions() {
  return {{CudnnConfig::ranked(CudnnHeuristic::kA, 1), 9.0},
          {engine_config(4), 8.0},
          {engine_config(0), 8.5}};
}

inline std::unique_ptr<CudnnDispatcher> open_cudnn(CudnnDispatchOptions options) {
  FakeCudnn::get();
  options.cudnn = {FORETUNE_FAKE_GPU};
  options.driver = FORETUNE_FAKE_GPU;
  auto opened = CudnnDispatcher::open(std::move(options));
  EXPECT_TRUE(opened) << opened.error().message;
  return *std::move(opened);
}

// Prepares a convolution, runs it and checks the result.
inline std::shared_ptr<const CudnnPlan> run(CudnnDispatcher& dispatcher, const CudnnCall& call) {
  const auto plan = dispatcher.prepare(call);
  EXPECT_TRUE(plan) << plan.error().message;
  const ConvSample sample(call.sizes);
  sample.poison();
  EXPECT_EQ(dispatcher.run(**plan, FakeCudnn::get().library->handle(), nullptr, sample.operands(),
                           (*plan)->workspace_bytes()),
            0);
  sample.check((*plan)->engine() == 5);
  return *plan;
}

}  // namespace foretune
