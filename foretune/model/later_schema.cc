#include "foretune/model/later_schema.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/features/expression_table.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

bool adds_labels_only(const ConfigSchema& later, const ConfigSchema& earlier) {
  if (later.name != earlier.name || later.version != earlier.version ||
      later.kind != earlier.kind || later.parameters.size() != earlier.parameters.size()) {
    return false;
  }
  for (std::size_t p = 0; p < later.parameters.size(); ++p) {
    const Parameter& now = later.parameters[p];
    const Parameter& then = earlier.parameters[p];
    if (now.name != then.name || now.labels.empty() != then.labels.empty() ||
        now.labels.size() < then.labels.size() ||
        !std::equal(then.labels.begin(), then.labels.end(), now.labels.begin())) {
      return false;
    }
  }
  return true;
}

Result<Model> with_later_schema(Model model, const ConfigSchema& later) {
  FORETUNE_CHECK(adds_labels_only(later, model.config_schema));
  if (model.config_schema == later) {
    return model;
  }
  model.config_schema = later;
  for (Config& config : model.pool) {
    config.schema = later.id();
  }
  if (!model.space_text.empty()) {
    FORETUNE_TRY(SpaceDefinition space, SpaceDefinition::parse(model.space_text));
    space.schema = later;
    model.space_text = space.text();
  }
  if (!model.feature_text.empty()) {
    FORETUNE_TRY(ExpressionFeatures features, ExpressionFeatures::parse(model.feature_text));
    features.parameters = later.parameters;
    model.feature_text = features.text();
    FORETUNE_TRY(const FeatureTable* const table, kept_expression_table(model.feature_text));
    model.feature_table_id = feature_table_id(*table);
  }
  std::vector<MetricModel> metrics = metrics_of(model);
  for (MetricModel& metric : metrics) {
    FORETUNE_TRY(Model part, with_later_schema(*metric.model, later));
    metric.model = std::make_shared<const Model>(std::move(part));
  }
  if (!metrics.empty()) {
    set_metrics(model, std::move(metrics));
  }
  return model;
}

}  // namespace foretune
