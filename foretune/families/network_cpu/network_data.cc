#include "foretune/families/network_cpu/network_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "foretune/graph/reference.h"

namespace foretune::network_cpu {

namespace {

// Images that are judged at once.
constexpr std::int64_t kJudged = 64;

// The arrays that a plan writes.
struct Outputs {
  explicit Outputs(const graph::NetworkPlan& plan) {
    for (const std::int64_t size : plan.output_elements()) {
      arrays.emplace_back(static_cast<std::size_t>(size));
      pointers.push_back(arrays.back().data());
    }
  }
  std::vector<std::vector<float>> arrays;
  std::vector<float*> pointers;
};

}  // namespace

NetworkData::NetworkData(std::shared_ptr<const graph::Task> task,
                         std::shared_ptr<graph::Executor> executor, const Options& options)
    : task_(std::move(task)), executor_(std::move(executor)), options_(options) {}

Result<std::unique_ptr<NetworkData>> NetworkData::create(std::shared_ptr<const graph::Task> task,
                                                         std::shared_ptr<graph::Executor> executor,
                                                         const Options& options) {
  std::unique_ptr<NetworkData> data(new NetworkData(std::move(task), std::move(executor), options));
  FORETUNE_TRY_STATUS(data->prepare());
  return data;
}

Status NetworkData::prepare() {
  const graph::Shape& shape = task_->network.tensor(task_->network.outputs()[0]).shape;
  if (const Support fits = options_.metric->supports(shape); !fits) {
    return fail(ErrorCode::kUnsupported, fits.reason());
  }
  const graph::LabelledImages& tuning = task_->tuning;
  const std::int64_t elements = task_->image_elements();
  images_.resize(static_cast<std::size_t>(options_.images * elements));
  for (std::int64_t i = 0; i < options_.images; ++i) {
    task_->read_images(tuning, i % tuning.count(), 1,
                       std::span(images_).subspan(static_cast<std::size_t>(i * elements)));
  }
  input_ = images_.data();
  for (const graph::TensorId id : task_->network.outputs()) {
    outputs_.emplace_back(static_cast<std::size_t>(
        graph::element_count(task_->network.tensor(id).shape) * options_.images));
  }
  for (std::vector<float>& output : outputs_) {
    output_pointers_.push_back(output.data());
  }
  const std::int64_t count = std::min(options_.calibration_images, tuning.count());
  std::vector<float> seen(static_cast<std::size_t>(count * elements));
  task_->read_images(tuning, 0, count, seen);
  FORETUNE_TRY(const auto plan,
               graph::NetworkPlan::create(task_->network, executor_, {.images = count}));
  Outputs outputs(*plan);
  const float* const input = seen.data();
  return plan->observe({&input, 1}, outputs.pointers, ranges_);
}

void NetworkData::poison() {
  for (std::vector<float>& output : outputs_) {
    std::fill(output.begin(), output.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

Support NetworkData::verify() {
  for (const std::vector<float>& output : outputs_) {
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (!std::isfinite(output[i])) {
        return Support::no("number ", i, " of an output is ", output[i]);
      }
    }
  }
  if (!is_exact_) {
    return Support::yes();
  }
  if (reference_.empty()) {
    const std::vector<float> first(
        images_.begin(), images_.begin() + static_cast<std::ptrdiff_t>(task_->image_elements()));
    auto outputs = graph::run_reference(task_->network, {&first, 1}, 1);
    if (!outputs) {
      return Support::no(outputs.error().message);
    }
    reference_ = std::move(outputs->front());
  }
  double most = 1e-6;
  for (const double value : reference_) {
    most = std::max(most, std::abs(value));
  }
  constexpr double kTolerance = 1e-4;
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    const auto found = static_cast<double>(outputs_[0][i]);
    if (std::abs(found - reference_[i]) > kTolerance * most) {
      return Support::no("output ", i, " of the first image is ", found, ", not ", reference_[i]);
    }
  }
  return Support::yes();
}

std::int64_t NetworkData::bytes() const {
  std::size_t floats = images_.size();
  for (const std::vector<float>& output : outputs_) {
    floats += output.size();
  }
  return static_cast<std::int64_t>(floats * sizeof(float)) + task_->network.weight_bytes();
}

Result<double> NetworkData::quality(const graph::Variants& variants, Judges judges,
                                    std::int64_t count) const {
  const bool is_test = judges == Judges::kTest;
  const graph::LabelledImages& images = is_test ? task_->test : task_->tuning;
  if (images.count() == 0) {
    return fail(ErrorCode::kUnsupported, "the task has no images for testing");
  }
  FORETUNE_TRY(const auto plan,
               graph::NetworkPlan::create(
                   task_->network, executor_,
                   {.images = kJudged, .variants = variants, .calibration = ranges_}));
  if (count == 0) {
    count = is_test ? 0 : options_.tuning_images;
  }
  return judge(*plan, images, count > 0 ? std::min(count, images.count()) : images.count());
}

Result<double> NetworkData::judge(const graph::NetworkPlan& plan,
                                  const graph::LabelledImages& images, std::int64_t count) const {
  const graph::QualityMetric& metric = *options_.metric;
  std::unique_ptr<graph::NetworkPlan> exact_plan;
  if (metric.needs_exact()) {
    FORETUNE_TRY(exact_plan,
                 graph::NetworkPlan::create(task_->network, executor_, {.images = kJudged}));
  }
  Outputs exact(exact_plan != nullptr ? *exact_plan : plan);
  std::vector<float> input(static_cast<std::size_t>(kJudged * task_->image_elements()), 0.0F);
  Outputs outputs(plan);
  const float* const from = input.data();
  const auto row = static_cast<std::size_t>(task_->classes());
  const graph::Shape& shape = task_->network.tensor(task_->network.outputs()[0]).shape;
  const std::vector<double> weights =
      metric.weights(std::span(images.labels).first(static_cast<std::size_t>(count)));
  double quality = 0;
  for (std::int64_t first = 0; first < count; first += kJudged) {
    const std::int64_t now = std::min(kJudged, count - first);
    task_->read_images(images, first, now, input);
    FORETUNE_TRY_STATUS(plan.run({&from, 1}, outputs.pointers));
    if (exact_plan != nullptr) {
      FORETUNE_TRY_STATUS(exact_plan->run({&from, 1}, exact.pointers));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(now); ++i) {
      const std::size_t image = static_cast<std::size_t>(first) + i;
      const double score =
          metric.score({.outputs = std::span<const float>(outputs.arrays[0]).subspan(i * row, row),
                        .exact = std::span<const float>(exact.arrays[0]).subspan(i * row, row),
                        .label = images.labels[image],
                        .shape = shape});
      quality += weights[image] * score;
    }
  }
  return quality / static_cast<double>(count);
}

}  // namespace foretune::network_cpu
