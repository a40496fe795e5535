// A model of three metrics for tests: time, a time to pack with zeros, and a quality that is
// maximised. Nothing is trained. Not part of the library.
// Thread safety: free functions without state.
#pragma once

#include <memory>
#include <utility>

#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {

// A part of `whole` with forests of its own.
inline std::shared_ptr<const Model> sample_part(const Model& whole, const ModelShape& shape,
                                                Rng& rng) {
  Model part = sample_model(shape, rng);
  part.pool = whole.pool;
  part.portfolio = whole.portfolio;
  part.problem_range = whole.problem_range;
  part.domain = whole.domain;
  part.target = "log";
  return std::make_shared<const Model>(std::move(part));
}

inline Model sample_metrics_model(const ModelShape& shape, Rng& rng) {
  Model model = sample_model(shape, rng);
  model.target = "log";
  set_metrics(model, {{metric_info("time_ns"), ValueScale{}, sample_part(model, shape, rng)},
                      {metric_info("pack_ns"),
                       ValueScale{.kind = ValueScale::Kind::kOffsetLog, .offset = 0.001},
                       sample_part(model, shape, rng)},
                      {metric_info("qos_tune"),
                       ValueScale{.kind = ValueScale::Kind::kLinear, .reference = 80, .step = -4},
                       sample_part(model, shape, rng)}});
  return model;
}

// Changes the metrics of a model of several.
template <typename Edit>
void edit_metrics(Model& model, Edit&& edit) {
  std::vector<MetricModel> metrics = metrics_of(model);
  edit(metrics);
  set_metrics(model, std::move(metrics));
}

}  // namespace foretune
