// Judges whole networks by the images of a task, and says how far a loss on other images may
// exceed the one that was seen.
//
//   FORETUNE_TRY(const std::vector<float> outputs,
//                outputs_of(task, executor, ranges, variants, task.tuning.count()));
//   const PairedCounts counts = compare_rights(exact, outputs, task.tuning.labels, classes);
//   counts.loss();                    // points, on the images
//   counts.loss() + counts.margin(1.645, other_images);
//
// Two networks are judged by the same images, so that only the images count that one of them alone
// gets right (McNemar 1947). Thread safety: free functions and plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
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

// Two networks on the same images.
struct PairedCounts {
  std::int64_t images = 0;
  std::int64_t only_first = 0;  // that the first network alone gets right
  std::int64_t only_second = 0;

  // Returns the loss of the second network, in points.
  [[nodiscard]] double loss() const;
  // Returns how far its loss on `others` other images may exceed that on these, in points, at a
  // normal quantile. Both losses vary by the images that only one network gets right. Their share
  // is taken as if each kind had been seen once more, so that two networks that agree on all of a
  // few images are not taken for equal.
  [[nodiscard]] double margin(double quantile, std::int64_t others) const;
};

// Rows of outputs of both networks, for the images of `labels`.
[[nodiscard]] PairedCounts compare_rights(std::span<const float> first,
                                          std::span<const float> second,
                                          std::span<const std::int32_t> labels,
                                          std::int64_t classes);

}  // namespace foretune::approx
