// Pareto sets of points whose coordinates are all to be minimised.
//
//   const PointSet points(values, 2);              // row after row
//   const std::vector<std::size_t> front = pareto_front(points);
//   const double volume = hypervolume(points, reference);
//
// Thread safety: free functions without state. Cost: at each function.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace foretune {

// Points as rows of a matrix; borrowed. No coordinate is a NaN.
struct PointSet {
  std::span<const double> values;
  std::size_t dimensions = 1;
  [[nodiscard]] std::size_t size() const {
    return dimensions == 0 ? 0 : values.size() / dimensions;
  }
  [[nodiscard]] std::span<const double> operator[](std::size_t i) const {
    return values.subspan(i * dimensions, dimensions);
  }
};

// Returns true when `a` is nowhere worse than `b` and somewhere better.
bool dominates(std::span<const double> a, std::span<const double> b);

// Returns the positions of the points that no other dominates, ascending; of equal points only the
// first. Exact.
// Cost: n log n in two dimensions, n * front in more.
std::vector<std::size_t> pareto_front(const PointSet& points);

// Returns every point's layer: 0 for the front, 1 for the front of the remaining points, and so on.
// Points equal to one of a layer belong to it. Cost: n log n in two dimensions, at most n^2 in
// more.
std::vector<std::size_t> front_layers(const PointSet& points);

// Returns the volume that the points dominate within the box below `reference`; points that are not
// better than it everywhere add nothing. Exact in any dimension (in two dimensions a sweep, n log
// n; in more by slicing, n times the cost of one dimension less).
double hypervolume(const PointSet& points, std::span<const double> reference);

// Returns the volume that would be lost without each point; 0 for dominated points and for
// duplicates. Cost: n log n in two dimensions; in more, for each point of the front, the cost of
// the volume that it shares with others.
std::vector<double> hypervolume_contributions(const PointSet& points,
                                              std::span<const double> reference);

// Returns the point of the front where a small sacrifice in one coordinate stops gaining much in
// another: the one farthest below the hyperplane that cuts every axis at 1, with each coordinate
// scaled to the front's range (0 to 1). In two dimensions that plane is the line through the
// extremes of the front; in more, a plane through the extremes may not exist. It is the point with
// the smallest sum of scaled coordinates, of equals the first; nothing for no points. An infinite
// coordinate counts as the nearest finite one of the front.
std::optional<std::size_t> knee(const PointSet& points);

// Returns a smallest subset of the front such that every point of the front is within `epsilon` of
// a chosen one: chosen <= point + epsilon in every coordinate. Exact in two dimensions; in more, a
// greedy cover, at most ln(n) + 1 times as large as the smallest. An epsilon below 0 counts as 0.
// Positions are ascending.
std::vector<std::size_t> epsilon_front(const PointSet& points, double epsilon);

// Returns the positions of exactly min(count, size) points, ascending. Where the front has more
// than `count` points, chooses the subset of the largest hypervolume: exact in two dimensions by
// dynamic programming; in more, the best of a greedy removal. Its reference lies behind the front's
// worst by the front's range in every coordinate, so that the ends of a front are worth their
// places. Where the front has fewer, takes the whole front, and then layer by layer (duplicates of
// the front first, for they are of layer 0) the points nearest to the front. The distance of a
// point is the smallest, over the points of the front, of the largest coordinate by which that
// point is better, scaled to the front's range; of equals the first counts. Cost in two dimensions:
// n log n, and front * count * log(front) time and front * count * 4 bytes where the front is to
// shrink.
std::vector<std::size_t> take_best(const PointSet& points, std::size_t count);

}  // namespace foretune
