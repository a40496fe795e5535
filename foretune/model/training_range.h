// The box of feature values that a model was trained on: what is asked where there is no domain,
// and what names the feature that is unlike the training problems.
//
//   for (const OutsideRange& outside : outside_ranges(model, table, problem)) { ... }
//
// Thread safety: a free function. Cost: one row of problem features.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"

namespace foretune {

// The range of a feature that may be anything, and missing: NaN.
inline constexpr std::pair<double, double> kNoLimits{std::numeric_limits<double>::lowest(),
                                                     std::numeric_limits<double>::max()};

// NaN lies within kNoLimits only.
inline bool is_within(double value, const std::pair<double, double>& range) {
  return (value >= range.first && value <= range.second) ||
         (std::isnan(value) && range == kNoLimits);
}

// A feature of the problem, and the range it had in training.
struct OutsideRange {
  std::string feature;
  double value = 0;
  double low = 0;
  double high = 0;
};

// The problem features that lie outside of their ranges, in the order of the table, which is the
// model's.
std::vector<OutsideRange> outside_ranges(const Model& model, const FeatureTable& table,
                                         const Problem& problem);

}  // namespace foretune
