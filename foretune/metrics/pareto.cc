#include "foretune/metrics/pareto.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "foretune/metrics/pareto_parts.h"

namespace foretune {

using pareto_parts::is_nowhere_worse;
using pareto_parts::Row;

namespace pareto_parts {

std::vector<std::size_t> lexicographic_order(const PointSet& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const Row a = points[i];
    const Row b = points[j];
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[k] != b[k]) {
        return a[k] < b[k];
      }
    }
    return i < j;
  });
  return order;
}

std::vector<double> gather(const PointSet& points, const std::vector<std::size_t>& chosen) {
  std::vector<double> values;
  values.reserve(chosen.size() * points.dimensions);
  for (const std::size_t i : chosen) {
    values.insert(values.end(), points[i].begin(), points[i].end());
  }
  return values;
}

std::vector<Extent> extents(const PointSet& points) {
  std::vector<Extent> out(points.dimensions);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k].add(points[i][k]);
    }
  }
  return out;
}

std::vector<double> scaled_values(const PointSet& points) {
  const std::vector<Extent> ranges = extents(points);
  std::vector<double> out;
  out.reserve(points.values.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      out.push_back(ranges[k].scaled(points[i][k]));
    }
  }
  return out;
}

}  // namespace pareto_parts

namespace {

// The first comparison handles infinite coordinates: their sum with an infinite epsilon may be a
// NaN.
bool covers(Row chosen, Row point, double epsilon) {
  for (std::size_t k = 0; k < point.size(); ++k) {
    if (!(chosen[k] <= point[k] || chosen[k] <= point[k] + epsilon)) {
      return false;
    }
  }
  return true;
}

// Covers a front in two dimensions. A point covers only neighbours, on both sides, and the farther
// to the right it lies, the farther it reaches. The smallest cover takes, for the first point that
// is not covered, the last point that covers it.
std::vector<std::size_t> cover_plane(const PointSet& points, std::vector<std::size_t> front,
                                     double epsilon) {
  std::sort(front.begin(), front.end(),
            [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < front.size();) {
    const Row first = points[front[i]];
    while (i + 1 < front.size() && covers(points[front[i + 1]], first, epsilon)) {
      ++i;
    }
    chosen.push_back(front[i]);
    const Row last = points[front[i]];
    do {
      ++i;
    } while (i < front.size() && covers(last, points[front[i]], epsilon));
  }
  return chosen;
}

// Takes the point that covers the most uncovered points, until all are covered (Chvatal 1979). The
// count of a point only ever falls, so an old count is an upper bound of the new one.
std::vector<std::size_t> cover_greedily(const PointSet& points,
                                        const std::vector<std::size_t>& front, double epsilon) {
  struct Candidate {
    std::size_t gain;
    std::size_t point;
    bool operator<(const Candidate& other) const {
      return gain != other.gain ? gain < other.gain : point > other.point;
    }
  };
  std::vector<std::size_t> uncovered = front;
  std::priority_queue<Candidate> queue;
  for (const std::size_t i : front) {
    queue.push({front.size(), i});
  }
  std::vector<std::size_t> chosen;
  while (!uncovered.empty()) {
    Candidate top = queue.top();
    queue.pop();
    const auto is_covered = [&](std::size_t i) {
      return covers(points[top.point], points[i], epsilon);
    };
    top.gain =
        static_cast<std::size_t>(std::count_if(uncovered.begin(), uncovered.end(), is_covered));
    if (!queue.empty() && top < queue.top()) {
      queue.push(top);
      continue;
    }
    chosen.push_back(top.point);
    std::erase_if(uncovered, is_covered);
  }
  return chosen;
}

}  // namespace

bool dominates(std::span<const double> a, std::span<const double> b) {
  return is_nowhere_worse(a, b, a.size()) && !is_nowhere_worse(b, a, a.size());
}

std::vector<std::size_t> pareto_front(const PointSet& points) {
  std::vector<std::size_t> front;
  for (const std::size_t i : pareto_parts::lexicographic_order(points)) {
    const Row point = points[i];
    const auto is_as_good = [&](std::size_t other) {
      return is_nowhere_worse(points[other], point, points.dimensions);
    };
    // In two dimensions, the last point of the front has the lowest second coordinate so far.
    const bool is_behind = points.dimensions <= 2
                               ? !front.empty() && is_as_good(front.back())
                               : std::any_of(front.begin(), front.end(), is_as_good);
    if (!is_behind) {
      front.push_back(i);
    }
  }
  std::sort(front.begin(), front.end());
  return front;
}

std::vector<std::size_t> front_layers(const PointSet& points) {
  std::vector<std::size_t> out(points.size());
  std::vector<std::vector<std::size_t>> layers;
  const std::vector<std::size_t> order = pareto_parts::lexicographic_order(points);
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::size_t i = order[n];
    const Row point = points[i];
    const auto is_as_good = [&](std::size_t other) {
      return is_nowhere_worse(points[other], point, points.dimensions);
    };
    if (n > 0 && std::ranges::equal(points[order[n - 1]], point)) {
      out[i] = out[order[n - 1]];
      continue;
    }
    // A point that one of a layer dominates is dominated by one of each earlier layer, so a binary
    // search works (Zhang et al. 2015). In two dimensions, the last point of a layer has its lowest
    // second coordinate.
    const auto found = std::partition_point(
        layers.begin(), layers.end(), [&](const std::vector<std::size_t>& layer) {
          return points.dimensions <= 2 ? is_as_good(layer.back())
                                        : std::any_of(layer.rbegin(), layer.rend(), is_as_good);
        });
    out[i] = static_cast<std::size_t>(found - layers.begin());
    if (found == layers.end()) {
      layers.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  return out;
}

std::optional<std::size_t> knee(const PointSet& points) {
  const std::vector<std::size_t> front = pareto_front(points);
  const std::vector<double> values = pareto_parts::gather(points, front);
  const std::vector<double> scaled = pareto_parts::scaled_values({values, points.dimensions});
  const PointSet rows{scaled, points.dimensions};
  std::optional<std::size_t> best;
  double smallest = pareto_parts::kInfinity;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double sum = std::accumulate(rows[i].begin(), rows[i].end(), 0.0);
    if (sum < smallest) {
      smallest = sum;
      best = front[i];
    }
  }
  return best;
}

std::vector<std::size_t> epsilon_front(const PointSet& points, double epsilon) {
  epsilon = epsilon > 0 ? epsilon : 0;
  const std::vector<std::size_t> front = pareto_front(points);
  std::vector<std::size_t> chosen = points.dimensions == 2 ? cover_plane(points, front, epsilon)
                                                           : cover_greedily(points, front, epsilon);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace foretune
