// Declares what only the sources of pareto.h share.
// Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "foretune/metrics/pareto.h"

namespace foretune::pareto_parts {

using Row = std::span<const double>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns true when `a` is nowhere worse than `b` in the first `dimensions` coordinates.
inline bool is_nowhere_worse(Row a, Row b, std::size_t dimensions) {
  for (std::size_t k = 0; k < dimensions; ++k) {
    if (a[k] > b[k]) {
      return false;
    }
  }
  return true;
}

// Returns the positions ordered by coordinates from the first on, then by position. No point is
// dominated by one behind it, and equal points are neighbours.
std::vector<std::size_t> lexicographic_order(const PointSet& points);

// Returns the coordinates of the chosen points.
std::vector<double> gather(const PointSet& points, const std::vector<std::size_t>& chosen);

// Returns the volume that only row `i` dominates; all are better than the reference everywhere.
double exclusive_volume(const std::vector<Row>& rows, std::size_t i, Row reference);

// The range of the finite values of a coordinate. Computes with halves, whose differences cannot
// overflow.
struct Extent {
  double low = kInfinity;
  double high = -kInfinity;

  void add(double value) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  [[nodiscard]] double half_range() const { return low < high ? high / 2 - low / 2 : 0; }
  // Returns 0 for the lowest value, 1 for the highest.
  [[nodiscard]] double scaled(double value) const {
    const double range = half_range();
    return range > 0 ? (std::clamp(value, low, high) / 2 - low / 2) / range : 0;
  }
};

std::vector<Extent> extents(const PointSet& points);

// Returns each coordinate scaled to its range; an infinite one counts as the nearest finite one.
std::vector<double> scaled_values(const PointSet& points);

}  // namespace foretune::pareto_parts
