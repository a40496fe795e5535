#include <utility>

#include "foretune/measure/measure.h"

namespace foretune {

Measurement Measurer::blank(const Problem& problem, const Config& config) const {
  return Measurement{.problem = problem,
                     .config = config,
                     .context = context(),
                     .reason = {},
                     .metrics = {},
                     .samples_ns = {}};
}

void Measurer::refuse(Measurement& measurement, Outcome outcome, Stage stage, std::string reason) {
  measurement.outcome = outcome;
  measurement.stage = stage;
  measurement.reason = std::move(reason);
  measurement.metrics.clear();
  measurement.samples_ns.clear();
}

}  // namespace foretune
