// The box of feature values that a model was trained on: what is asked where there is no hull, and
// what names the feature that is unlike the training problems.
//
//   for (const OutsideRange& outside : outside_ranges(model, table, problem)) { ... }
//
// Thread safety: a free function. Cost: one row of problem features.
#pragma once

#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/problem/problem.h"

namespace foretune {

// A feature of the problem, and the range it had in training.
struct OutsideRange {
  std::string feature;
  double value = 0;
  double low = 0;
  double high = 0;
};

// The problem features that lie outside of their ranges, in the order of the table, which is the
// model's; NaN lies outside of all.
std::vector<OutsideRange> outside_ranges(const Model& model, const FeatureTable& table,
                                         const Problem& problem);

}  // namespace foretune
