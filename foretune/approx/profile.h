// Finds out what the knobs of a network's layers do alone, and which of them are worth choosing.
//
//   FORETUNE_TRY(const Profile profile, make_profile(task, executors, options));
//
// Knobs that save nothing are left out, and then those that another knob of the same layer beats in
// both time and change. Thread safety: free functions. Cost: minutes for a large network, most of
// them for the effects (effects.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/approx/loss_model.h"
#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/variant.h"
#include "foretune/graph/task.h"
#include "foretune/space/config.h"

namespace foretune::approx {

struct ProfileOptions {
  std::vector<std::int32_t> knobs;
  std::int64_t images = 64;         // of a call, whose time counts
  std::int64_t effect_images = 64;  // tuning images that judge single knobs
  const graph::QualityMetric* metric = &graph::accuracy_quality();
  std::function<void(std::string_view)> on_phase;  // may be empty
  std::function<bool()> wants_stop;                // may be empty
};

struct Profile {
  graph::Network network;  // simplified
  graph::Calibration ranges;
  NetworkTimes times;
  Effects effects;
  // The cost of the effects, as a number of whole networks on the images of the effects.
  double networks = 0;

  [[nodiscard]] std::vector<std::int32_t> knobs(const Choices& choices) const;
  [[nodiscard]] graph::Variants variants(const Choices& choices) const;
  // Choices and knobs are in the order of the simplified network, configs in that of the task's.
  [[nodiscard]] Config config_of(const Choices& choices, const graph::Network& task_network,
                                 std::uint64_t schema) const;
  [[nodiscard]] std::vector<std::int32_t> knobs_of(const Config& config,
                                                   const graph::Network& task_network) const;
};

// Returns how a config computes the layers of a task's network.
[[nodiscard]] graph::Variants variants_of(const graph::Network& task_network, const Config& config);

// `ranges` are of all tensors of the task's network. `timed` has the threads of a call, `quick`
// those that judge images. Errors: as measure_times() and measure_effects().
Result<Profile> make_profile(const graph::Task& task, graph::Calibration ranges,
                             const std::shared_ptr<graph::Executor>& timed,
                             const std::shared_ptr<graph::Executor>& quick,
                             const ProfileOptions& options);

}  // namespace foretune::approx
