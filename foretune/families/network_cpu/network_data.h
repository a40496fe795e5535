// A task on the way to be measured: its network, images, ranges and reference outputs.
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/task.h"
#include "foretune/problem/problem.h"

namespace foretune::network_cpu {

enum class Judges : std::uint8_t { kTuning, kTest };

class NetworkData final : public ProblemData {
 public:
  struct Options {
    std::int64_t images = 1;         // of a call
    std::int64_t tuning_images = 0;  // that judge a config; 0: all of the task
    std::int64_t calibration_images = 512;
    const graph::QualityMetric* metric = &graph::accuracy_quality();
  };
  // Errors: as NetworkPlan::create(); kUnsupported for outputs that the metric cannot judge.
  static Result<std::unique_ptr<NetworkData>> create(std::shared_ptr<const graph::Task> task,
                                                     std::shared_ptr<graph::Executor> executor,
                                                     const Options& options);

  void poison() override;
  // Compares with the exact network's outputs, for an exact config; other configs have to give
  // numbers.
  Support verify() override;
  std::int64_t bytes() const override;

  [[nodiscard]] const graph::Task& task() const { return *task_; }
  [[nodiscard]] const std::shared_ptr<graph::Executor>& executor() const { return executor_; }
  [[nodiscard]] const graph::Calibration& ranges() const { return ranges_; }
  [[nodiscard]] std::int64_t images() const { return options_.images; }
  // The arrays of a call.
  [[nodiscard]] std::span<const float* const> inputs() const { return {&input_, 1}; }
  [[nodiscard]] std::span<float* const> outputs() const { return output_pointers_; }
  // Says which config the next verify() judges.
  void expect_exact(bool is_exact) { is_exact_ = is_exact; }

  // Returns the quality by the metric, of an accuracy in percent; of the tuning images those that
  // the options name, or the first `count`. Errors: as NetworkPlan::create() and run();
  // kUnsupported for a task without images for testing.
  Result<double> quality(const graph::Variants& variants, Judges judges,
                         std::int64_t count = 0) const;

 private:
  NetworkData(std::shared_ptr<const graph::Task> task, std::shared_ptr<graph::Executor> executor,
              const Options& options);
  Status prepare();
  Result<double> judge(const graph::NetworkPlan& plan, const graph::LabelledImages& images,
                       std::int64_t count) const;

  std::shared_ptr<const graph::Task> task_;
  std::shared_ptr<graph::Executor> executor_;
  Options options_;
  graph::Calibration ranges_;
  std::vector<float> images_;  // of a call
  const float* input_ = nullptr;
  std::vector<std::vector<float>> outputs_;
  std::vector<float*> output_pointers_;
  std::vector<double> reference_;  // the first output for the first image
  bool is_exact_ = true;
};

}  // namespace foretune::network_cpu
