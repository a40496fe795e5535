// The body of the kind "metrics": a whole model for each of several metrics.
//
//   set_metrics(model, std::move(metrics));
//   for (const MetricModel& part : metrics_of(model)) ...
//
// Thread safety: free functions without state.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "foretune/metrics/metric.h"
#include "foretune/metrics/value_scale.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"

namespace foretune {

// One metric: what predicts its z (ValueScale) and thereby its value.
struct MetricModel {
  MetricInfo metric;
  ValueScale scale;
  // A whole model of target "log" for the same configs and problems. Never null in a model that was
  // read.
  std::shared_ptr<const Model> model;
  bool operator==(const MetricModel& other) const;  // of the models themselves
};

using MetricsBody = PartsBody<MetricModel>;

// The one that scores are of first. None where the model is of another kind, or was read without
// its body.
const std::vector<MetricModel>& metrics_of(const Model& model);
// Makes the model one of several metrics.
void set_metrics(Model& model, std::vector<MetricModel> metrics);

// The row of the table of kinds.
const ModelKind& metrics_model_kind();

}  // namespace foretune
