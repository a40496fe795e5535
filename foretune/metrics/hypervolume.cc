#include <utility>

#include "foretune/base/check.h"
#include "foretune/metrics/pareto.h"
#include "foretune/metrics/pareto_parts.h"

namespace foretune {

using pareto_parts::is_nowhere_worse;
using pareto_parts::kInfinity;
using pareto_parts::Row;

namespace {

bool is_better_everywhere(Row a, Row b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!(a[k] < b[k])) {
      return false;
    }
  }
  return true;
}

bool holds(Row row, double value) { return std::find(row.begin(), row.end(), value) != row.end(); }

// Adds the row unless one of `kept` is nowhere worse, and removes the rows that it is nowhere worse
// than. Returns false when the row was not added.
bool insert_undominated(std::vector<Row>& kept, Row row, std::size_t dimensions) {
  for (const Row other : kept) {
    if (is_nowhere_worse(other, row, dimensions)) {
      return false;
    }
  }
  std::erase_if(kept, [&](Row other) { return is_nowhere_worse(row, other, dimensions); });
  kept.push_back(row);
  return true;
}

double plane_volume(std::vector<Row> rows, Row reference) {
  std::sort(rows.begin(), rows.end(),
            [](Row a, Row b) { return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1]; });
  double total = 0;
  double top = reference[1];
  for (const Row row : rows) {
    if (row[1] < top) {
      total += (reference[0] - row[0]) * (top - row[1]);
      top = row[1];
    }
  }
  return total;
}

// Returns the volume of rows that are nowhere behind the reference and finite; only their first
// `dimensions` coordinates count. Cuts along the last of these; between two cuts, the volume of the
// other coordinates does not change (Zitzler 2001, While et al. 2006).
double volume(std::vector<Row> rows, std::size_t dimensions, Row reference) {
  if (dimensions == 2) {
    return plane_volume(std::move(rows), reference);
  }
  const std::size_t last = dimensions - 1;
  std::sort(rows.begin(), rows.end(), [last](Row a, Row b) { return a[last] < b[last]; });
  if (dimensions == 1) {
    return rows.empty() ? 0 : reference[0] - rows[0][0];
  }
  std::vector<Row> kept;
  double total = 0;
  double slice = 0;
  bool has_changed = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    has_changed = insert_undominated(kept, rows[i], last) || has_changed;
    const double top = i + 1 < rows.size() ? rows[i + 1][last] : reference[last];
    if (top == rows[i][last]) {
      continue;
    }
    if (has_changed) {
      slice = volume(kept, last, reference);
      has_changed = false;
    }
    total += slice * (top - rows[i][last]);
  }
  return total;
}

// Returns the positions of the points that are better than the reference everywhere: they add to
// the volume, or would without others.
std::vector<std::size_t> points_before(const PointSet& points, Row reference) {
  FORETUNE_CHECK(reference.size() == points.dimensions);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (is_better_everywhere(points[i], reference)) {
      out.push_back(i);
    }
  }
  return out;
}

double area(double left, double right, double bottom, double top) {
  // There is nothing between equal infinities, but their difference would be a NaN.
  return left == right || bottom == top ? 0 : (right - left) * (top - bottom);
}

// Computes the contributions of points in two dimensions, all better than the reference; fills
// `out` at `places`. A point of the front contributes the rectangle up to its neighbours, less the
// area of points that only this one dominates.
void plane_contributions(const PointSet& inside, const std::vector<std::size_t>& places,
                         Row reference, std::vector<double>& out) {
  const std::vector<std::size_t> order = pareto_parts::lexicographic_order(inside);
  std::vector<std::size_t> front;
  std::vector<std::vector<std::size_t>> behind;  // up to the next of the front
  for (const std::size_t i : order) {
    if (front.empty() || inside[i][1] < inside[front.back()][1]) {
      front.push_back(i);
      behind.emplace_back();
    } else {
      behind.back().push_back(i);
    }
  }
  for (std::size_t f = 0; f < front.size(); ++f) {
    const Row point = inside[front[f]];
    const double right = f + 1 < front.size() ? inside[front[f + 1]][0] : reference[0];
    double left = point[0];
    double top = f > 0 ? inside[front[f - 1]][1] : reference[1];
    double total = 0;
    for (const std::size_t i : behind[f]) {
      if (inside[i][1] < top) {
        total += area(left, inside[i][0], point[1], top);
        left = inside[i][0];
        top = inside[i][1];
      }
    }
    out[places[front[f]]] = total + area(left, right, point[1], top);
  }
}

}  // namespace

double pareto_parts::exclusive_volume(const std::vector<Row>& rows, std::size_t i, Row reference) {
  const std::size_t dimensions = reference.size();
  const Row row = rows[i];
  // The corners of the parts that the others cut from the box between the row and the reference.
  std::vector<double> corners;
  corners.reserve(rows.size() * dimensions);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    if (j == i) {
      continue;
    }
    if (is_nowhere_worse(rows[j], row, dimensions)) {
      return 0;
    }
    for (std::size_t k = 0; k < dimensions; ++k) {
      corners.push_back(std::max(rows[j][k], row[k]));
    }
  }
  // No other row is that good there.
  if (holds(row, -kInfinity)) {
    return kInfinity;
  }
  const PointSet others{corners, dimensions};
  std::vector<double> limit(reference.begin(), reference.end());
  for (std::size_t k = 0; k < dimensions; ++k) {
    if (limit[k] != kInfinity) {
      continue;
    }
    // Far out along k, only the other coordinates decide who dominates. Where another row is
    // nowhere worse in these, this row contributes nothing beyond it.
    limit[k] = row[k];
    bool is_bounded = false;
    for (std::size_t j = 0; j < others.size(); ++j) {
      const Row corner = others[j];
      limit[k] = std::max(limit[k], corner[k]);
      bool is_inside = true;
      for (std::size_t other = 0; other < dimensions; ++other) {
        is_inside = is_inside && (other == k || corner[other] == row[other]);
      }
      is_bounded = is_bounded || is_inside;
    }
    if (!is_bounded) {
      return kInfinity;
    }
  }
  double box = 1;
  for (std::size_t k = 0; k < dimensions; ++k) {
    box *= limit[k] - row[k];
  }
  std::vector<Row> kept;
  for (std::size_t j = 0; j < others.size(); ++j) {
    insert_undominated(kept, others[j], dimensions);
  }
  return std::max(0.0, box - volume(std::move(kept), dimensions, limit));
}

double hypervolume(const PointSet& points, std::span<const double> reference) {
  const std::vector<std::size_t> before = points_before(points, reference);
  std::vector<Row> rows;
  for (const std::size_t i : before) {
    rows.push_back(points[i]);
  }
  const bool is_unbounded =
      holds(reference, kInfinity) ||
      std::any_of(rows.begin(), rows.end(), [](Row row) { return holds(row, -kInfinity); });
  if (!rows.empty() && is_unbounded) {
    return kInfinity;
  }
  return volume(std::move(rows), points.dimensions, reference);
}

std::vector<double> hypervolume_contributions(const PointSet& points,
                                              std::span<const double> reference) {
  std::vector<double> out(points.size());
  const std::vector<std::size_t> before = points_before(points, reference);
  const std::vector<double> values = pareto_parts::gather(points, before);
  const PointSet inside{values, points.dimensions};
  if (points.dimensions == 2) {
    plane_contributions(inside, before, reference, out);
    return out;
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    rows.push_back(inside[i]);
  }
  for (const std::size_t i : pareto_front(inside)) {
    out[before[i]] = pareto_parts::exclusive_volume(rows, i, reference);
  }
  return out;
}

}  // namespace foretune
