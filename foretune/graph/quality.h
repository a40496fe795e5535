// Judges the outputs of networks, image by image: accuracies by labels, likenesses to the outputs
// of the exact network.
//
//   FORETUNE_TRY(const QualityMetric* metric, find_quality("top5"));
//   const double points = metric->score({.outputs = row, .label = 3, .shape = shape});
//
// The quality of a set of images is the weighted mean of their scores. A new metric is a class and
// a row of the table in quality.cc, or register_quality() in a program of one's own.
//
// Thread safety: metrics are constant; the table takes rows while others read it. Cost: of score(),
// a pass over the outputs unless a metric says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::graph {

// One image on the way through a network.
struct JudgedImage {
  std::span<const float> outputs;  // the first of the network
  std::span<const float> exact;    // those of the exact network; may be empty without needs_exact()
  std::int32_t label = 0;
  std::span<const std::int64_t> shape;  // of the outputs, of one image
};

class QualityMetric {
 public:
  QualityMetric() = default;
  QualityMetric(const QualityMetric&) = delete;
  QualityMetric& operator=(const QualityMetric&) = delete;
  virtual ~QualityMetric() = default;

  // "top5"; stays as long as the metric.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view description() const = 0;
  // The unit of scores: percentage points unless said otherwise.
  [[nodiscard]] virtual std::string_view unit() const { return "points"; }
  // True where a score is either 0 or 100.
  [[nodiscard]] virtual bool is_count() const { return false; }
  // Returns k where an image scores 100 if its label has one of the k largest outputs, the first of
  // equal ones first, and 0 if not; else 0. Margins between outputs then foretell scores.
  [[nodiscard]] virtual std::int64_t ranks() const { return 0; }
  [[nodiscard]] virtual bool needs_exact() const { return false; }
  // Says why networks with such an output cannot be judged so.
  [[nodiscard]] virtual Support supports(std::span<const std::int64_t> shape) const;
  // Returns the score of an image; more is better, so an error counts negative. Finite.
  [[nodiscard]] virtual double score(const JudgedImage& image) const = 0;
  // Returns the weight of each image of a set, from 0 up and 1 in the mean: exactly 1 for all
  // unless said otherwise, so that sums of counts have no error.
  [[nodiscard]] virtual std::vector<double> weights(std::span<const std::int32_t> labels) const;
};

// The built-in ones:
//   accuracy        images whose largest output is that of their label
//   top5            images whose label has one of the five largest outputs
//   class-accuracy  the mean over classes of each class's accuracy
//   psnr            the ratio of the range of the exact outputs to the mean squared change, in dB;
//                   100 for equal ones and as the most of any image
//   ssim            structural similarity to the exact outputs, times 100 (Wang et al. 2004)
[[nodiscard]] const QualityMetric& accuracy_quality();
// Returns all metrics, the built-in ones first.
[[nodiscard]] std::span<const QualityMetric* const> quality_metrics();
// Errors: kNotFound, with the names there are.
Result<const QualityMetric*> find_quality(std::string_view name);
// Adds a metric for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_quality(std::unique_ptr<const QualityMetric> metric);

}  // namespace foretune::graph
