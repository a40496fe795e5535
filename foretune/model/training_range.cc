#include "foretune/model/training_range.h"

#include <algorithm>
#include <cstddef>

namespace foretune {

std::vector<OutsideRange> outside_ranges(const Model& model, const FeatureTable& table,
                                         const Problem& problem) {
  std::vector<double> row(feature_count(table, FeatureKind::kProblem));
  table.problem_row(problem, model.fingerprint.hardware, row);
  std::vector<OutsideRange> out;
  for (std::size_t i = 0; i < std::min(row.size(), model.problem_range.size()); ++i) {
    const auto& range = model.problem_range[i];
    if (!is_within(row[i], range)) {
      out.push_back({std::string(table.columns()[i].name), row[i], range.first, range.second});
    }
  }
  return out;
}

}  // namespace foretune
