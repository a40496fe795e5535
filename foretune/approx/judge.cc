#include "foretune/approx/judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "foretune/base/check.h"
#include "foretune/graph/run/plan.h"

namespace foretune::approx {

namespace {

// Images of one call.
constexpr std::int64_t kImagesOfCall = 64;

}  // namespace

Result<std::vector<float>> outputs_of(const graph::Task& task,
                                      const std::shared_ptr<graph::Executor>& executor,
                                      const graph::Calibration& ranges,
                                      const graph::Variants& variants, std::int64_t count) {
  if (count < 1 || count > task.tuning.count()) {
    return fail(ErrorCode::kInvalidArgument, "the task has ", task.tuning.count(),
                " tuning images, not ", count);
  }
  FORETUNE_TRY(const auto plan,
               graph::NetworkPlan::create(
                   task.network, executor,
                   {.images = kImagesOfCall, .variants = variants, .calibration = ranges}));
  std::vector<float> input(static_cast<std::size_t>(kImagesOfCall * task.image_elements()), 0.0F);
  std::vector<std::vector<float>> arrays;
  std::vector<float*> pointers;
  for (const std::int64_t elements : plan->output_elements()) {
    pointers.push_back(arrays.emplace_back(static_cast<std::size_t>(elements)).data());
  }
  const float* const from = input.data();
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(count * task.classes()));
  for (std::int64_t first = 0; first < count; first += kImagesOfCall) {
    const std::int64_t now = std::min(kImagesOfCall, count - first);
    task.read_images(task.tuning, first, now, input);
    FORETUNE_TRY_STATUS(plan->run({&from, 1}, pointers));
    rows.insert(rows.end(), arrays[0].begin(),
                arrays[0].begin() + static_cast<std::ptrdiff_t>(now * task.classes()));
  }
  return rows;
}

std::vector<double> scores_of(const graph::QualityMetric& metric,
                              std::span<const std::int64_t> shape, std::span<const float> outputs,
                              std::span<const float> exact, std::span<const std::int32_t> labels) {
  FORETUNE_CHECK(exact.size() == outputs.size());
  const std::size_t width = labels.empty() ? 0 : outputs.size() / labels.size();
  FORETUNE_CHECK(outputs.size() == labels.size() * width);
  std::vector<double> scores;
  scores.reserve(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    scores.push_back(metric.score({.outputs = outputs.subspan(i * width, width),
                                   .exact = exact.subspan(i * width, width),
                                   .label = labels[i],
                                   .shape = shape}));
  }
  return scores;
}

double PairedScores::loss() const { return 100.0 * (lost - gained) / static_cast<double>(images); }

double PairedScores::margin(double quantile, std::int64_t others) const {
  const auto count = static_cast<double>(images);
  const double more = are_counts ? 1 : 0;  // of each kind
  const double mean = (lost + more) / (count + 2 * more) - (gained + more) / (count + 2 * more);
  const double squares =
      (lost_squares + more) / (count + 2 * more) + (gained_squares + more) / (count + 2 * more);
  // Equal differences leave nothing but an error of rounding, which may be below 0.
  const double variance = std::max(0.0, squares - mean * mean);
  return quantile * 100 * std::sqrt(variance * (1 / count + 1 / static_cast<double>(others)));
}

PairedScores PairedScores::scaled_to(std::int64_t count) const {
  PairedScores out{.images = count, .are_counts = are_counts};
  const double share = static_cast<double>(count) / static_cast<double>(images);
  if (are_counts) {
    const double all = differing() / static_cast<double>(images) * static_cast<double>(count);
    out.lost = out.gained = out.lost_squares = out.gained_squares = std::round(all / 2);
  } else {
    out.lost = lost * share;
    out.gained = gained * share;
    out.lost_squares = lost_squares * share;
    out.gained_squares = gained_squares * share;
  }
  return out;
}

PairedScores compare_scores(const graph::QualityMetric& metric,
                            std::span<const std::int32_t> labels, std::span<const double> first,
                            std::span<const double> second) {
  FORETUNE_CHECK(first.size() == labels.size() && second.size() == labels.size());
  const std::vector<double> weights = metric.weights(labels);
  PairedScores pair{.images = static_cast<std::int64_t>(labels.size()),
                    .are_counts = metric.is_count()};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double lost = weights[i] * (first[i] - second[i]) / 100;
    (lost > 0 ? pair.lost : pair.gained) += std::abs(lost);
    (lost > 0 ? pair.lost_squares : pair.gained_squares) += lost * lost;
  }
  return pair;
}

}  // namespace foretune::approx
