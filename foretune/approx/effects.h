// Measures what each knob of each layer does alone: to the network's outputs, and to its time. The
// models of quality and time (models.h) add these effects up.
//
//   FORETUNE_TRY(EffectTimes times, measure_times(task, executor, ranges, knobs, {}));
//   FORETUNE_TRY(Effects effects, measure_effects(task, executor, ranges, times, {}));
//
// The exact network runs once for each image, layer by layer; a knob's effect needs only the rest
// of the network behind its layer, which on average is half of it.
//
// Thread safety: free functions; each call belongs to one thread. Cost: at each function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/variant.h"
#include "foretune/graph/task.h"

namespace foretune::approx {

// The knobs of a layer (graph/run/knob.h), 0 first, and the time of each for all images of a call:
// that of the layer's own step and of those up to the next layer's, in a network whose layers all
// have this knob or, where they cannot, are exact.
struct LayerTimes {
  std::string layer;
  std::vector<std::int32_t> knobs;
  std::vector<double> ns;

  // Returns nothing for a knob that the layer cannot have.
  [[nodiscard]] std::optional<double> ns_of(std::int32_t knob) const;
};

struct NetworkTimes {
  std::vector<LayerTimes> layers;
  double before_ns = 0;  // steps before the first layer
};

struct TimeOptions {
  std::int64_t images = 64;  // of a call
  int rounds = 5;            // in which the networks take turns; the fastest of each step counts
  // Asked before every network; true ends the work. May be empty.
  std::function<bool()> wants_stop;
};

// Times every knob on every layer that can have it. `executor` has the threads of the calls. Cost:
// a network of each knob is prepared and runs `rounds` + 1 times. Errors: as NetworkPlan::create()
// and run(); kCancelled when wants_stop ended it.
Result<NetworkTimes> measure_times(const graph::Network& network,
                                   const std::shared_ptr<graph::Executor>& executor,
                                   const graph::Calibration& ranges,
                                   std::span<const std::int32_t> knobs, const TimeOptions& options);

// One knob on one layer, all others exact.
struct KnobEffect {
  std::int32_t knob = 0;
  // Its outputs less the exact ones: a row of classes for each image; empty for the exact knob.
  std::vector<float> changes;
  double quality = 0;
  double size = 0;  // of the changes, over the spread of the exact outputs (spread())
};

struct LayerEffects {
  std::string layer;
  std::vector<KnobEffect> knobs;  // the exact one first
};

// Qualities are sums over the images of their weighted scores, not means, so that those of counts
// have no error.
struct Effects {
  const graph::QualityMetric* metric = &graph::accuracy_quality();
  graph::Shape shape;        // of an image's output
  std::int64_t classes = 0;  // the numbers in it
  std::vector<std::int32_t> labels;
  std::vector<double> weights;       // of the images
  std::vector<float> exact;          // outputs of the exact network, image by image
  std::vector<double> exact_scores;  // of the images
  double exact_quality = 0;
  std::vector<LayerEffects> layers;

  [[nodiscard]] std::int64_t images() const { return static_cast<std::int64_t>(labels.size()); }
  // Returns whether the ranks of outputs make the scores.
  [[nodiscard]] bool has_ranks() const { return metric->ranks() > 0 && metric->ranks() < classes; }
  // Returns the loss to a quality, in the metric's unit.
  [[nodiscard]] double loss(double quality) const {
    return (exact_quality - quality) / static_cast<double>(images());
  }
  // Returns the scores of outputs of all images.
  [[nodiscard]] std::vector<double> scores(std::span<const float> outputs) const;
  // Returns the quality of scores of all images.
  [[nodiscard]] double quality(std::span<const double> scores) const;
};

struct EffectOptions {
  std::int64_t first = 0;  // of the tuning images
  std::int64_t images = 0;
  const graph::QualityMetric* metric = &graph::accuracy_quality();
  // Called now and then with the share that is done, from 0 to 1; true ends the work. May be empty.
  std::function<bool(double)> on_progress;
};

// Measures the knobs of `wanted` (of each layer in the order of the simplified network, the exact
// one first). Errors: as NetworkPlan::create() and run(); kCancelled when on_progress ended it.
Result<Effects> measure_effects(const graph::Task& task,
                                const std::shared_ptr<graph::Executor>& executor,
                                const graph::Calibration& ranges,
                                std::span<const std::vector<std::int32_t>> wanted,
                                const EffectOptions& options);

// Returns the root of the mean square of all outputs, each less the mean of its row: what all
// classes of an image have in common says nothing about its class.
[[nodiscard]] double spread(std::span<const float> outputs, std::int64_t classes);

}  // namespace foretune::approx
