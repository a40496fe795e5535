// Judges whole networks by the images of a task, and says how far a loss on other images may
// exceed the one that was seen.
//
//   FORETUNE_TRY(const std::vector<float> outputs,
//                outputs_of(task, executor, ranges, variants, task.tuning.count()));
//   const std::vector<double> scores = scores_of(metric, shape, outputs, exact, labels);
//   const PairedScores pair = compare_scores(metric, labels, exact_scores, scores);
//   pair.loss();                    // in the metric's unit, on the images
//   pair.loss() + pair.margin(1.645, other_images);
//
// Two networks are judged by the same images, so that only the differences of their scores count;
// of an accuracy, the images that one of them alone gets right (McNemar 1947).
//
// Thread safety: free functions and plain values. Cost: of scores, that of the metric for each
// image; of comparisons, a pass over the scores.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/variant.h"
#include "foretune/graph/task.h"

namespace foretune::approx {

// Returns the first output of the first `count` tuning images, a row of classes for each. Errors:
// as NetworkPlan::create() and run().
Result<std::vector<float>> outputs_of(const graph::Task& task,
                                      const std::shared_ptr<graph::Executor>& executor,
                                      const graph::Calibration& ranges,
                                      const graph::Variants& variants, std::int64_t count);

// Returns the score of each image of `labels`. `outputs` and `exact` have a row of shape's elements
// for each; `exact` are those of the exact network.
[[nodiscard]] std::vector<double> scores_of(const graph::QualityMetric& metric,
                                            std::span<const std::int64_t> shape,
                                            std::span<const float> outputs,
                                            std::span<const float> exact,
                                            std::span<const std::int32_t> labels);

// Two networks on the same images. Sums are over the images' weighted differences of scores, in
// hundreds of the metric's unit: of an accuracy, they are numbers of images.
struct PairedScores {
  std::int64_t images = 0;
  bool are_counts = true;  // QualityMetric::is_count()
  double lost = 0;         // where the first network scores more
  double gained = 0;       // where the second one does
  double lost_squares = 0;
  double gained_squares = 0;

  // Returns the loss of the second network, in the metric's unit.
  [[nodiscard]] double loss() const;
  // Returns the sum of squares: of an accuracy, the images that only one network gets right.
  [[nodiscard]] double differing() const { return lost_squares + gained_squares; }
  // Returns how far its loss on `others` other images may exceed that on these, in the metric's
  // unit, at a normal quantile. Both losses vary as the differences do. Counts are taken as if an
  // image lost and an image gained had been seen besides, so that two networks that agree on all of
  // a few images are not taken for equal.
  [[nodiscard]] double margin(double quantile, std::int64_t others) const;
  // Returns what so many images are expected to show. Counts are taken to lose as many images as
  // they gain, which errs on the safe side.
  [[nodiscard]] PairedScores scaled_to(std::int64_t count) const;
};

// Scores of both networks, for the images of `labels`.
[[nodiscard]] PairedScores compare_scores(const graph::QualityMetric& metric,
                                          std::span<const std::int32_t> labels,
                                          std::span<const double> first,
                                          std::span<const double> second);

}  // namespace foretune::approx
