// Computes how much each feature contributes to a forest's prediction. Along the path of a row
// through a tree, every split moves the expected prediction from that of a node to that of its
// child, and the split feature is credited with the difference (Saabas 2014, "Interpreting random
// forests"). The base and the contributions add up to the prediction.
//
// The expected prediction of a node is the mean over the given rows that reach it. With the
// candidates of one problem as rows, the problem's features contribute nothing, since all
// candidates share them. The remaining contributions tell one candidate from another.
//
//   const auto parts = attribute_paths(forest, rows, {best, second});
//   parts[1].of_feature[f] - parts[0].of_feature[f]
//
// Thread safety: free functions without state. Cost: rows x trees x depth.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/model/forest/forest.h"

namespace foretune {

struct Attribution {
  double base = 0;                 // mean prediction over all rows
  std::vector<double> of_feature;  // by feature of the forest
};

// Returns one attribution for each of `explained`, which are positions of rows. `rows` has
// feature_count values for each row.
std::vector<Attribution> attribute_paths(const Forest& forest, std::span<const double> rows,
                                         std::span<const std::size_t> explained);

}  // namespace foretune
