// Data sets with several metrics by formula, for tests: time, a time to pack that is 0 for some
// configs, and a quality to be maximised. Not part of the library.
// Thread safety: free functions without state.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/metrics/metric.h"

namespace foretune {

inline constexpr std::string_view kSampleQuality = "qos_tune";

// Metrics beside the time: one of an evaluation, one without a unit.
inline const MetricInfo kPsnr{.name = "psnr_db",
                              .unit = "dB",
                              .direction = Direction::kMaximise,
                              .stage = MetricStage::kEvaluation};
inline const MetricInfo kMisses{.name = "l2_misses", .unit = ""};

// A measurement on some CPU; one that is not ok has a reason.
inline Measurement row_with_metrics(Problem problem, Config config,
                                    std::vector<MetricValue> metrics, Stage stage,
                                    Outcome outcome) {
  return {.problem = std::move(problem),
          .config = std::move(config),
          .context = {.machine = 1, .device = "cpu"},
          .outcome = outcome,
          .stage = stage,
          .reason = outcome == Outcome::kOk ? "" : "it broke",
          .metrics = std::move(metrics),
          .samples_ns = {}};
}

// A measurement's metrics by name.
inline void set_metrics(Measurement& measurement,
                        const std::vector<std::pair<std::string_view, double>>& values) {
  for (const auto& [name, value] : values) {
    measurement.metrics.emplace_back(name, value, 0, 1);
  }
}

}  // namespace foretune
