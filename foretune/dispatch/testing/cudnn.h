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
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"
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
inline Model cudnn_model(std::vector<ConvPrediction> predictions,
                         const CudnnModelOptions& options = {}) {
  const FeatureTable* const table = *find_feature_table("conv-cudnn-plain");
  Model model;
  model.problem_type = kConvProblem;
  model.family = "cudnn";
  model.problem_schema = find_problem_schema(kConvProblem)->id();
  model.config_schema = cudnn_schema();
  model.space_text = cudnn_space().text();
  model.feature_table = std::string(table->name());
  model.feature_table_id = feature_table_id(*table);
  model.fingerprint = h200_fingerprint();
  model.fingerprint.isa = options.isa;
  model.target = "log";
  model.card_json = "{}";
  for (const ConvPrediction& prediction : predictions) {
    model.pool.push_back(prediction.config.to_config());
  }
  model.portfolio = {0};
  std::size_t engine = 0;
  for (std::size_t i = 0; i < table->columns().size(); ++i) {
    const FeatureInfo& column = table->columns()[i];
    if (column.kind == FeatureKind::kProblem) {
      model.problem_range.emplace_back(-1e300,
                                       column.name == "log2_n" ? options.most_log2_n : 1e300);
      if (column.name == "op" && options.operation) {
        const auto number = static_cast<double>(*options.operation);
        model.problem_range.back() = {number, number};
      }
    }
    engine = column.name == "config_log2_engine" ? i : engine;
  }
  const auto by_engine = [](const ConvPrediction& p) { return p.config.engine; };
  std::ranges::stable_sort(predictions, {}, by_engine);
  const auto twins = std::ranges::unique(predictions, {}, by_engine);
  predictions.erase(twins.begin(), twins.end());
  Forest forest;
  forest.feature_count = static_cast<std::uint32_t>(table->columns().size());
  const auto nodes = static_cast<std::uint32_t>(predictions.size() - 1);
  forest.trees.push_back({0, nodes, 0, nodes + 1});
  for (std::uint32_t node = 0; node < nodes; ++node) {
    forest.feature.push_back(static_cast<std::uint32_t>(engine));
    forest.threshold.push_back(std::log2(1.5 + predictions[node].config.engine));
    forest.left.push_back(~static_cast<std::int32_t>(node));
    forest.right.push_back(node + 1 == nodes ? ~static_cast<std::int32_t>(node + 1)
                                             : static_cast<std::int32_t>(node + 1));
    forest.default_left.push_back(0);
    forest.missing.push_back(Forest::Missing::kNone);
  }
  for (const ConvPrediction& prediction : predictions) {
    forest.leaf_value.push_back(prediction.score);
  }
  set_forests(model, {std::move(forest)});
  return model;
}

inline CudnnConfig engine_config(std::int32_t engine,
                                 std::vector<std::pair<std::int32_t, std::int32_t>> knobs = {}) {
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
  EXPECT_EQ(dispatcher.run(**plan, FakeCudnn::get().library->handle(), nullptr, sample.operands()),
            0);
  sample.check((*plan)->engine() == 5);
  return *plan;
}

}  // namespace foretune
