#include "foretune/measure/dataset_header.h"

#include <string>

#include "foretune/metrics/metric.h"

namespace foretune {

DatasetHeader header_of(const FamilyInfo& info) {
  DatasetHeader header;
  header.family = info.name;
  header.problem_type = info.problem_type;
  header.config_schema = info.config_schema;
  header.space_text = info.space != nullptr ? info.space->definition().text() : std::string();
  header.fingerprint = info.fingerprint;
  for (const MetricInfo& metric : info.metrics) {
    if (find_metric(common_metrics(), metric.name) == nullptr) {
      header.metrics.push_back(metric);
    }
  }
  return header;
}

}  // namespace foretune
