// What each feature contributes to a forest's prediction: along the path of a row through a tree,
// every split moves the expected prediction from that of a node to that of the child, and the split
// feature is credited with the difference (Saabas 2014, "Interpreting random forests"). Base and
// contributions add up to the prediction.
//
// The expected prediction of a node is the mean over the given rows that reach it. With the
// candidates of one problem as rows, features of the problem contribute nothing, for all candidates
// share them; what is left says what tells one candidate from another.
//
//   const auto parts = attribute_paths(forest, rows, {best, second});
//   parts[1].of_feature[f] - parts[0].of_feature[f]
//
// Thread safety: free functions without state. Cost: rows x trees x depth.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/models/infer/forest.h"

namespace foretune {

struct Attribution {
  double base = 0;                 // mean prediction over all rows
  std::vector<double> of_feature;  // by feature of the forest
};

// `rows` holds feature_count values each; `explained` are positions of rows.
std::vector<Attribution> attribute_paths(const Forest& forest, std::span<const double> rows,
                                         std::span<const std::size_t> explained);

}  // namespace foretune
