#include <cstdint>
#include <numeric>
#include <queue>
#include <ranges>

#include "foretune/metrics/pareto.h"
#include "foretune/metrics/pareto_parts.h"

namespace foretune {

using pareto_parts::Extent;
using pareto_parts::kInfinity;
using pareto_parts::Row;

namespace {

// Scaled coordinates end at 1, so this is one range behind the worst.
constexpr double kScaledReference = 2;

// Chooses the subset of `count` rows with the largest area, from points in two dimensions that
// ascend in the first coordinate and descend in the second. Row i behind row l in a subset adds
// (reference - x_i) * (y_l - y_i). The best l for a later row never lies before that for an earlier
// row, which divides the search.
class PlaneSubset {
 public:
  explicit PlaneSubset(const PointSet& rows) : rows_(rows), best_(rows.size()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      best_[i] = width(i) * (kScaledReference - rows[i][1]);
    }
  }

  std::vector<std::size_t> choose(std::size_t count) {
    const std::size_t size = rows_.size();
    std::vector<std::vector<std::uint32_t>> before;
    for (std::size_t taken = 1; taken < count; ++taken) {
      next_.assign(size, -kInfinity);
      before_.assign(size, 0);
      fill(taken, size, taken - 1, size);
      best_.swap(next_);
      before.push_back(before_);
    }
    const auto first = best_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    auto end = static_cast<std::size_t>(std::max_element(first, best_.end()) - best_.begin());
    std::vector<std::size_t> chosen{end};
    for (std::size_t taken = before.size(); taken-- > 0;) {
      end = before[taken][end];
      chosen.push_back(end);
    }
    return chosen;
  }

 private:
  [[nodiscard]] double width(std::size_t i) const { return kScaledReference - rows_[i][0]; }

  // The best of one more row that end at rows [begin, end), with predecessors in [low, high).
  void fill(std::size_t begin, std::size_t end, std::size_t low, std::size_t high) {
    if (begin >= end) {
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    std::size_t choice = low;
    for (std::size_t l = low; l < std::min(middle, high); ++l) {
      const double total = best_[l] + width(middle) * (rows_[l][1] - rows_[middle][1]);
      if (total > next_[middle]) {
        next_[middle] = total;
        choice = l;
      }
    }
    before_[middle] = static_cast<std::uint32_t>(choice);
    fill(begin, middle, low, choice + 1);
    fill(middle + 1, end, choice, high);
  }

  PointSet rows_;
  std::vector<double> best_;  // of subsets of the present size, by their last row
  std::vector<double> next_;
  std::vector<std::uint32_t> before_;  // the row before the last
};

// Removes the row with the smallest exclusive volume until `count` are left. That volume only grows
// when other rows go, so an old figure is a lower bound of the new one, and few have to be computed
// again.
std::vector<std::size_t> remove_smallest(const PointSet& rows, std::size_t count) {
  struct Candidate {
    double own;
    std::size_t row;
    bool operator<(const Candidate& other) const {
      return own != other.own ? own > other.own : row < other.row;
    }
  };
  const std::vector<double> reference(rows.dimensions, kScaledReference);
  std::vector<std::size_t> kept(rows.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  std::vector<Row> kept_rows;
  for (const std::size_t row : kept) {
    kept_rows.push_back(rows[row]);
  }
  const auto place_of = [&](std::size_t row) {
    return std::lower_bound(kept.begin(), kept.end(), row) - kept.begin();
  };
  std::priority_queue<Candidate> queue;
  for (const std::size_t row : kept) {
    queue.push({pareto_parts::exclusive_volume(kept_rows, row, reference), row});
  }
  while (kept.size() > count) {
    Candidate top = queue.top();
    queue.pop();
    const std::ptrdiff_t place = place_of(top.row);
    top.own = pareto_parts::exclusive_volume(kept_rows, static_cast<std::size_t>(place), reference);
    if (!queue.empty() && top < queue.top()) {
      queue.push(top);
      continue;
    }
    kept.erase(kept.begin() + place);
    kept_rows.erase(kept_rows.begin() + place);
  }
  return kept;
}

std::vector<std::size_t> thin_front(const PointSet& points, std::vector<std::size_t> front,
                                    std::size_t count) {
  if (count == 0) {
    return {};
  }
  if (points.dimensions == 2) {
    // The first coordinates of a front differ.
    std::sort(front.begin(), front.end(),
              [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
  }
  const std::vector<double> values = pareto_parts::gather(points, front);
  const std::vector<double> scaled = pareto_parts::scaled_values({values, points.dimensions});
  const PointSet rows{scaled, points.dimensions};
  std::vector<std::size_t> chosen =
      points.dimensions == 2 ? PlaneSubset(rows).choose(count) : remove_smallest(rows, count);
  for (std::size_t& position : chosen) {
    position = front[position];
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Returns, for each point of `behind`, how much better the nearest point of the front is, in the
// coordinate where the difference is largest.
std::vector<double> front_distances(const PointSet& points, std::vector<std::size_t> front,
                                    const std::vector<std::size_t>& behind) {
  std::sort(front.begin(), front.end(),
            [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
  const std::vector<double> values = pareto_parts::gather(points, front);
  const PointSet rows{values, points.dimensions};
  const std::vector<Extent> all = pareto_parts::extents(points);
  std::vector<double> half_ranges;
  for (const Extent& extent : pareto_parts::extents(rows)) {
    // A front with a single value says nothing about distances. Where no point has another finite
    // value, a difference is infinite on any scale.
    const double whole = all[half_ranges.size()].half_range();
    const double own = extent.half_range();
    half_ranges.push_back(own > 0 ? own : whole > 0 ? whole : 1);
  }
  std::vector<double> out;
  for (const std::size_t i : behind) {
    const Row point = points[i];
    const auto lead = [&](std::size_t f, std::size_t k) {
      // Equal infinities have no difference.
      return point[k] > rows[f][k] ? (point[k] / 2 - rows[f][k] / 2) / half_ranges[k] : 0;
    };
    std::size_t begin = 0;
    std::size_t end = rows.size();
    if (points.dimensions == 2) {
      // Along the front, one lead falls and the other grows: the smallest maximum of the two lies
      // where they cross.
      const auto places = std::views::iota(begin, end);
      const auto crossing = std::ranges::partition_point(
          places, [&](std::size_t f) { return lead(f, 0) > lead(f, 1); });
      const auto before = static_cast<std::size_t>(crossing - places.begin());
      begin = before - std::min<std::size_t>(before, 1);
      end = std::min(before + 1, end);
    }
    double nearest = kInfinity;
    for (std::size_t f = begin; f < end; ++f) {
      double largest = 0;
      for (std::size_t k = 0; k < point.size(); ++k) {
        largest = std::max(largest, lead(f, k));
      }
      nearest = std::min(nearest, largest);
    }
    out.push_back(nearest);
  }
  return out;
}

// Returns the `count` points of `layer` that are nearest to the front.
std::vector<std::size_t> nearest_to_front(const PointSet& points,
                                          const std::vector<std::size_t>& front,
                                          const std::vector<std::size_t>& layer,
                                          std::size_t count) {
  const std::vector<double> distances = front_distances(points, front, layer);
  std::vector<std::size_t> order(layer.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distances[a] < distances[b]; });
  order.resize(count);
  for (std::size_t& position : order) {
    position = layer[position];
  }
  return order;
}

}  // namespace

std::vector<std::size_t> take_best(const PointSet& points, std::size_t count) {
  count = std::min(count, points.size());
  const std::vector<std::size_t> front = pareto_front(points);
  if (front.size() > count) {
    return thin_front(points, front, count);
  }
  std::vector<std::size_t> chosen = front;
  const std::vector<std::size_t> layer_of = front_layers(points);
  std::vector<std::vector<std::size_t>> layers;
  for (std::size_t i = 0; i < points.size(); ++i) {
    layers.resize(std::max(layers.size(), layer_of[i] + 1));
    if (!std::binary_search(front.begin(), front.end(), i)) {
      layers[layer_of[i]].push_back(i);
    }
  }
  for (std::size_t layer = 0; chosen.size() < count; ++layer) {
    const std::size_t wanted = count - chosen.size();
    const std::vector<std::size_t> taken =
        layers[layer].size() <= wanted ? layers[layer]
                                       : nearest_to_front(points, front, layers[layer], wanted);
    chosen.insert(chosen.end(), taken.begin(), taken.end());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace foretune
