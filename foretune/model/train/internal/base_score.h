// The tree that a training may begin with: a step function of one column, so that the trees behind
// it learn what that column leaves open. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/model/forest/forest.h"

namespace foretune::train_internal {

// A value of the column with what is learned there.
struct BasePoint {
  double x = 0;  // may be NaN
  double value = 0;
  double weight = 1;
};

inline constexpr std::size_t kMaxBaseSteps = 512;

// Returns a forest of one tree over `columns` columns that splits on `column` alone. It is the
// monotone function, rising or falling, with the least weighted squared error (isotonic regression;
// Barlow and others 1972), of at most kMaxBaseSteps steps. Points without an `x` have a leaf of
// their own. Without points the tree is one leaf of 0.
Forest base_forest(std::vector<BasePoint> points, std::uint32_t column, std::uint32_t columns);

}  // namespace foretune::train_internal
