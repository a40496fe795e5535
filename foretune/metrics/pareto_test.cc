// Compares everything with brute force on small random sets, with many ties, duplicates and
// infinities.
#include "foretune/metrics/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Positions = std::vector<std::size_t>;

constexpr double kNoBound = std::numeric_limits<double>::infinity();

// Owns the data that a PointSet borrows.
struct Points {
  std::vector<double> values;
  std::size_t dimensions = 2;
  [[nodiscard]] PointSet set() const { return {values, dimensions}; }
  [[nodiscard]] std::size_t size() const { return set().size(); }
  [[nodiscard]] std::vector<double> row(std::size_t i) const {
    return {set()[i].begin(), set()[i].end()};
  }
  void add(std::span<const double> row) { values.insert(values.end(), row.begin(), row.end()); }
  [[nodiscard]] Points subset(const Positions& chosen) const {
    Points out{.values = {}, .dimensions = dimensions};
    for (const std::size_t i : chosen) {
      out.add(set()[i]);
    }
    return out;
  }
};

std::string text_of(const Points& points) {
  std::string out = concat(points.dimensions, " dimensions:");
  for (std::size_t i = 0; i < points.values.size(); ++i) {
    out += concat(i % points.dimensions == 0 ? " | " : " ", points.values[i]);
  }
  return out;
}

// Half of the sets lie near a front, because few points of the other sets do.
Points random_points(Rng& rng, std::size_t dimensions, std::size_t count, bool with_infinities) {
  Points out{.values = {}, .dimensions = dimensions};
  const std::int64_t largest = rng.below(2) == 0 ? 2 : 9;
  const bool is_front = rng.below(2) == 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && rng.below(6) == 0) {
      out.add(out.row(rng.below(i)));
      continue;
    }
    double sum = 0;
    for (std::size_t k = 0; k < dimensions; ++k) {
      auto value = static_cast<double>(rng.between(-largest, largest));
      if (is_front && k + 1 == dimensions && dimensions > 1) {
        value = static_cast<double>(rng.between(0, 1)) - sum;
      }
      sum += value;
      const bool is_infinite = with_infinities && rng.below(6) == 0;
      out.values.push_back(is_infinite ? std::copysign(kNoBound, value) : value);
    }
  }
  return out;
}

// Calls test(points, rng) for `rounds` random sets of each number of dimensions from 1 to 5.
void for_random_points(std::uint64_t seed, int rounds, bool with_infinities,
                       const std::function<void(const Points&, Rng&)>& test) {
  SCOPED_TRACE(concat("seed ", seed));
  Rng rng(seed);
  for (std::size_t dimensions = 1; dimensions <= 5; ++dimensions) {
    for (int i = 0; i < rounds; ++i) {
      const Points points =
          random_points(rng, dimensions, rng.below(dimensions < 4 ? 11 : 7), with_infinities);
      SCOPED_TRACE(text_of(points));
      test(points, rng);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

bool brute_dominates(std::span<const double> a, std::span<const double> b) {
  bool is_better = false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] > b[k]) {
      return false;
    }
    is_better = is_better || a[k] < b[k];
  }
  return is_better;
}

bool are_equal(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b);
}

Positions brute_front(const Points& points, const Positions& among) {
  Positions out;
  for (const std::size_t i : among) {
    const auto point = points.set()[i];
    if (std::none_of(among.begin(), among.end(), [&](std::size_t j) {
          return brute_dominates(points.set()[j], point) ||
                 (j < i && are_equal(points.set()[j], point));
        })) {
      out.push_back(i);
    }
  }
  return out;
}

Positions all_of(const Points& points) {
  Positions out(points.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

std::vector<double> random_reference(Rng& rng, std::size_t dimensions, bool with_infinities) {
  std::vector<double> out;
  for (std::size_t k = 0; k < dimensions; ++k) {
    const bool is_infinite = with_infinities && rng.below(4) == 0;
    out.push_back(is_infinite ? kNoBound : static_cast<double>(rng.between(0, 10)));
  }
  return out;
}

struct BruteVolumes {
  double total = 0;
  std::vector<double> own;  // of cells that only this point dominates
};

// Adds up the cells of the grid that all coordinates span.
BruteVolumes brute_volumes(const Points& points, const std::vector<double>& reference) {
  BruteVolumes out{.total = 0, .own = std::vector<double>(points.size())};
  std::vector<std::vector<double>> lines;
  for (std::size_t k = 0; k < points.dimensions; ++k) {
    std::set<double> values{reference[k]};
    for (std::size_t i = 0; i < points.size(); ++i) {
      values.insert(std::min(points.set()[i][k], reference[k]));
    }
    lines.emplace_back(values.begin(), values.end());
  }
  std::vector<double> corner(points.dimensions);
  const std::function<void(std::size_t, double)> visit = [&](std::size_t k, double volume) {
    if (k < points.dimensions) {
      for (std::size_t line = 0; line + 1 < lines[k].size(); ++line) {
        corner[k] = lines[k][line];
        visit(k + 1, volume * (lines[k][line + 1] - corner[k]));
      }
      return;
    }
    Positions owners;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto point = points.set()[i];
      if (std::ranges::equal(point, corner, std::less_equal<>())) {
        owners.push_back(i);
      }
    }
    out.total += owners.empty() ? 0 : volume;
    if (owners.size() == 1) {
      out.own[owners[0]] += volume;
    }
  };
  visit(0, 1);
  return out;
}

TEST(Dominates, NowhereWorseAndSomewhereBetter) {
  const std::array<double, 2> a{1, 2};
  const std::array<double, 2> b{1, 3};
  const std::array<double, 2> c{0, 3};
  EXPECT_TRUE(dominates(a, b));
  EXPECT_FALSE(dominates(b, a));
  EXPECT_FALSE(dominates(a, a));
  EXPECT_FALSE(dominates(a, c));
  EXPECT_FALSE(dominates(c, a));
  const std::array<double, 2> far{-kNoBound, 2};
  EXPECT_TRUE(dominates(far, a));
  EXPECT_FALSE(dominates(far, far));
}

TEST(ParetoFront, IsThatOfBruteForce) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(1, 3000, with_infinities, [](const Points& points, Rng&) {
      ASSERT_EQ(pareto_front(points.set()), brute_front(points, all_of(points)));
    });
  }
}

TEST(ParetoFront, KeepsTheFirstOfEqualPoints) {
  const Points points{.values = {3, 3, 1, 2, 1, 2, -0.0, 5, 0, 5}, .dimensions = 2};
  EXPECT_THAT(pareto_front(points.set()), ElementsAre(1, 3));
  EXPECT_THAT(pareto_front(Points{}.set()), IsEmpty());
}

TEST(FrontLayers, ArePeeledOffOneByOne) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(2, 3000, with_infinities, [](const Points& points, Rng&) {
      const Positions layers = front_layers(points.set());
      ASSERT_EQ(layers.size(), points.size());
      Positions left = all_of(points);
      for (std::size_t layer = 0; !left.empty(); ++layer) {
        const Positions front = brute_front(points, left);
        std::erase_if(left, [&](std::size_t i) {
          const bool is_of_front = std::any_of(front.begin(), front.end(), [&](std::size_t j) {
            return are_equal(points.set()[i], points.set()[j]);
          });
          EXPECT_EQ(layers[i] == layer, is_of_front) << "point " << i << ", layer " << layer;
          return is_of_front;
        });
      }
    });
  }
}

TEST(Hypervolume, IsThatOfAllCellsOfTheGrid) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(3, 1000, with_infinities, [&](const Points& points, Rng& rng) {
      const auto reference = random_reference(rng, points.dimensions, with_infinities);
      SCOPED_TRACE(testing::PrintToString(reference));
      ASSERT_EQ(hypervolume(points.set(), reference), brute_volumes(points, reference).total);
    });
  }
}

TEST(Hypervolume, OfKnownSets) {
  const Points stairs{.values = {1, 3, 2, 2, 3, 1}, .dimensions = 2};
  EXPECT_EQ(hypervolume(stairs.set(), std::array<double, 2>{4, 4}), 6);
  EXPECT_EQ(hypervolume(stairs.set(), std::array<double, 2>{1, 4}), 0);
  EXPECT_EQ(hypervolume(Points{}.set(), std::array<double, 2>{4, 4}), 0);
  const Points cube{.values = {0, 0, 0, 0, 0, 0}, .dimensions = 3};
  EXPECT_EQ(hypervolume(cube.set(), std::array<double, 3>{2, 3, 4}), 24);
  EXPECT_EQ(hypervolume(cube.set(), std::array<double, 3>{2, kNoBound, 4}), kNoBound);
  const Points line{.values = {5, 2, 3}, .dimensions = 1};
  EXPECT_EQ(hypervolume(line.set(), std::array<double, 1>{10}), 8);
}

TEST(HypervolumeContributions, AreTheCellsThatNoOtherDominates) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(4, 1000, with_infinities, [&](const Points& points, Rng& rng) {
      const auto reference = random_reference(rng, points.dimensions, with_infinities);
      SCOPED_TRACE(testing::PrintToString(reference));
      ASSERT_EQ(hypervolume_contributions(points.set(), reference),
                brute_volumes(points, reference).own);
    });
  }
}

TEST(HypervolumeContributions, AreTheLossWithoutThePoint) {
  for_random_points(5, 500, false, [](const Points& points, Rng& rng) {
    const auto reference = random_reference(rng, points.dimensions, false);
    const auto own = hypervolume_contributions(points.set(), reference);
    for (std::size_t i = 0; i < points.size(); ++i) {
      Positions others = all_of(points);
      std::erase(others, i);
      ASSERT_EQ(own[i], hypervolume(points.set(), reference) -
                            hypervolume(points.subset(others).set(), reference));
    }
  });
}

// Returns the lowest and the highest value of one coordinate on the front.
std::pair<double, double> range_of(const Points& points, const Positions& front, std::size_t k) {
  double low = kNoBound;
  double high = -kNoBound;
  for (const std::size_t i : front) {
    low = std::min(low, points.set()[i][k]);
    high = std::max(high, points.set()[i][k]);
  }
  return {low, high};
}

// Returns sums of coordinates scaled to the range of the front.
std::vector<double> scaled_sums(const Points& points, const Positions& front) {
  std::vector<double> out(front.size());
  for (std::size_t k = 0; k < points.dimensions; ++k) {
    const auto [low, high] = range_of(points, front, k);
    for (std::size_t n = 0; n < front.size() && low < high; ++n) {
      out[n] += (points.set()[front[n]][k] - low) / (high - low);
    }
  }
  return out;
}

TEST(Knee, HasTheSmallestSumOfScaledCoordinates) {
  for_random_points(6, 3000, false, [](const Points& points, Rng&) {
    const Positions front = pareto_front(points.set());
    const auto found = knee(points.set());
    ASSERT_EQ(found.has_value(), !front.empty());
    if (!found) {
      return;
    }
    const auto place = std::find(front.begin(), front.end(), *found);
    ASSERT_NE(place, front.end());
    const std::vector<double> sums = scaled_sums(points, front);
    ASSERT_NEAR(sums[static_cast<std::size_t>(place - front.begin())],
                *std::min_element(sums.begin(), sums.end()), 1e-12);
    // Units do not matter.
    Points other = points;
    for (std::size_t i = 0; i < other.values.size(); ++i) {
      other.values[i] *= i % points.dimensions == 0 ? 1024 : 0.25;
    }
    ASSERT_EQ(knee(other.set()), found);
  });
}

TEST(Knee, OfKnownSets) {
  const auto knee_of = [](std::vector<double> values, std::size_t dimensions = 2) {
    return knee({values, dimensions});
  };
  EXPECT_EQ(knee_of({}), std::nullopt);
  EXPECT_EQ(knee_of({7, 7}), 0U);
  EXPECT_EQ(knee_of({9, 9, 7, 7}), 1U);
  EXPECT_EQ(knee_of({10, 0, 0, 1}), 0U) << "of two, both as good, the first";
  EXPECT_EQ(knee_of({0, 100, 10, 2, 100, 1}), 1U);
  EXPECT_EQ(knee_of({0, 100, 90, 90, 95, 1, 100, 0}), 2U);
  EXPECT_EQ(knee_of({3, 1, 2}, 1), 1U);
  EXPECT_EQ(knee_of({0, 1, 1, 1, 0, 1, 1, 1, 0, 0.3, 0.3, 0.3}, 3), 3U);
}

TEST(Knee, AnInfiniteCoordinateCountsAsTheNearestFiniteOne) {
  const auto knee_of = [](std::vector<double> values) { return knee({values, 2}); };
  EXPECT_EQ(knee_of({10, -kNoBound, 5, -40, 3, -38}), 1U);
  EXPECT_EQ(knee_of({-kNoBound, kNoBound, 1, 1, kNoBound, -kNoBound}), 0U);
  constexpr double kHuge = std::numeric_limits<double>::max();
  EXPECT_EQ(knee_of({-kHuge, kHuge, -kHuge / 2, -kHuge / 2, kHuge, -kHuge}), 1U);
}

bool is_covered(const Points& points, std::size_t i, const Positions& chosen, double epsilon) {
  return std::any_of(chosen.begin(), chosen.end(), [&](std::size_t j) {
    return std::ranges::equal(points.set()[j], points.set()[i],
                              [&](double a, double b) { return a <= b || a <= b + epsilon; });
  });
}

bool is_cover(const Points& points, const Positions& front, const Positions& chosen,
              double epsilon) {
  return std::all_of(front.begin(), front.end(),
                     [&](std::size_t i) { return is_covered(points, i, chosen, epsilon); });
}

Positions masked(const Positions& positions, std::size_t mask) {
  Positions out;
  for (std::size_t n = 0; n < positions.size(); ++n) {
    if ((mask >> n & 1) != 0) {
      out.push_back(positions[n]);
    }
  }
  return out;
}

std::size_t smallest_cover(const Points& points, const Positions& front, double epsilon) {
  std::size_t smallest = front.size();
  for (std::size_t mask = 0; mask < std::size_t{1} << front.size(); ++mask) {
    const Positions chosen = masked(front, mask);
    if (chosen.size() < smallest && is_cover(points, front, chosen, epsilon)) {
      smallest = chosen.size();
    }
  }
  return smallest;
}

TEST(EpsilonFront, CoversTheFrontWithFewPoints) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(7, 500, with_infinities, [](const Points& points, Rng& rng) {
      const Positions front = pareto_front(points.set());
      for (const double epsilon :
           {0.0, static_cast<double>(rng.between(-1, 6)), rng.uniform() * 8, kNoBound}) {
        SCOPED_TRACE(concat("epsilon ", epsilon));
        const double counted = std::max(epsilon, 0.0);
        const Positions chosen = epsilon_front(points.set(), epsilon);
        ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
        ASSERT_TRUE(std::includes(front.begin(), front.end(), chosen.begin(), chosen.end()));
        ASSERT_TRUE(is_cover(points, front, chosen, counted));
        if (counted == 0) {
          ASSERT_EQ(chosen, front);
        }
        const std::size_t smallest = smallest_cover(points, front, counted);
        if (points.dimensions <= 2) {
          ASSERT_EQ(chosen.size(), smallest);
        }
        const double factor = std::log(std::max<std::size_t>(front.size(), 1)) + 1;
        ASSERT_LE(static_cast<double>(chosen.size()), factor * static_cast<double>(smallest));
      }
    });
  }
}

TEST(TakeBest, TakesExactlyAsManyAsThereAre) {
  for (const bool with_infinities : {false, true}) {
    for_random_points(8, 1000, with_infinities, [](const Points& points, Rng&) {
      const Positions front = pareto_front(points.set());
      for (std::size_t count = 0; count <= points.size() + 2; ++count) {
        const Positions chosen = take_best(points.set(), count);
        ASSERT_EQ(chosen.size(), std::min(count, points.size()));
        ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
        ASSERT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
        const bool is_smaller = chosen.size() < front.size();
        const Positions& less = is_smaller ? chosen : front;
        const Positions& more = is_smaller ? front : chosen;
        ASSERT_TRUE(std::includes(more.begin(), more.end(), less.begin(), less.end()));
      }
    });
  }
}

// Returns the front's worst, moved back by the front's range.
std::vector<double> reference_of(const Points& points, const Positions& front) {
  std::vector<double> out;
  for (std::size_t k = 0; k < points.dimensions; ++k) {
    const auto [low, high] = range_of(points, front, k);
    out.push_back(2 * high - low);
  }
  return out;
}

Points random_front(Rng& rng, std::size_t count) {
  Points points;
  double x = 0;
  double y = 0;
  for (std::size_t i = 0; i < count; ++i) {
    x += static_cast<double>(rng.between(1, 9));
    y -= static_cast<double>(rng.between(1, 9));
    points.add(std::array<double, 2>{x, y});
  }
  return points;
}

TEST(TakeBest, OfAPlaneHasTheLargestHypervolumeOfAllSubsets) {
  constexpr std::uint64_t kSeed = 9;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int round = 0; round < 1000; ++round) {
    const Points points = random_front(rng, 2 + rng.below(9));
    SCOPED_TRACE(text_of(points));
    const Positions all = all_of(points);
    const std::vector<double> reference = reference_of(points, all);
    std::vector<double> best(points.size() + 1);
    for (std::size_t mask = 0; mask < std::size_t{1} << points.size(); ++mask) {
      const Positions chosen = masked(all, mask);
      double& largest = best[chosen.size()];
      largest = std::max(largest, hypervolume(points.subset(chosen).set(), reference));
    }
    for (std::size_t count = 1; count <= points.size(); ++count) {
      const Positions chosen = take_best(points.set(), count);
      ASSERT_NEAR(hypervolume(points.subset(chosen).set(), reference), best[count], 1e-9)
          << count << " points";
    }
  }
}

TEST(TakeBest, InMoreDimensionsRemovesTheSmallestContributionEachTime) {
  constexpr std::uint64_t kSeed = 10;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int round = 0; round < 60; ++round) {
    Points points{.values = {}, .dimensions = 3 + rng.below(2)};
    for (std::size_t i = 0; i < 25 * points.dimensions; ++i) {
      points.values.push_back(rng.normal());
    }
    const Positions front = pareto_front(points.set());
    const std::vector<double> reference = reference_of(points, front);
    Positions kept = front;
    while (!kept.empty()) {
      ASSERT_EQ(take_best(points.set(), kept.size()), kept) << text_of(points);
      const auto own = hypervolume_contributions(points.subset(kept).set(), reference);
      kept.erase(kept.begin() + (std::min_element(own.begin(), own.end()) - own.begin()));
    }
  }
}

// Computes the distance from its definition; coordinates are finite.
double distance_to_front(const Points& points, const Positions& front, std::size_t i) {
  double nearest = kNoBound;
  for (const std::size_t f : front) {
    double largest = 0;
    for (std::size_t k = 0; k < points.dimensions; ++k) {
      const auto range_of = [&](const Positions& among) {
        double low = kNoBound;
        double high = -kNoBound;
        for (const std::size_t j : among) {
          low = std::min(low, points.set()[j][k]);
          high = std::max(high, points.set()[j][k]);
        }
        return high - low;
      };
      const double own = range_of(front);
      const double range = own > 0 ? own : range_of(all_of(points));
      const double worse = points.set()[i][k] - points.set()[f][k];
      largest = std::max(largest, worse > 0 ? worse / range : 0);
    }
    nearest = std::min(nearest, largest);
  }
  return nearest;
}

TEST(TakeBest, BehindTheFrontGoesLayerByLayerAndByDistance) {
  for_random_points(11, 1000, false, [](const Points& points, Rng&) {
    const Positions front = pareto_front(points.set());
    const Positions layers = front_layers(points.set());
    Positions order = all_of(points);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        const bool is_behind = !std::binary_search(front.begin(), front.end(), i);
        return std::tuple(is_behind, layers[i], distance_to_front(points, front, i));
      };
      return key(a) < key(b);
    });
    for (std::size_t count = front.size(); count <= points.size(); ++count) {
      Positions expected(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(take_best(points.set(), count), expected) << count << " points";
    }
  });
}

TEST(TakeBest, OfEqualPointsTakesTheFirst) {
  const Points points{.values = std::vector<double>(80, 1.0), .dimensions = 2};
  Positions first(25);
  std::iota(first.begin(), first.end(), std::size_t{0});
  EXPECT_EQ(take_best(points.set(), 25), first);
}

TEST(TakeBest, KeepsTheEndsOfAStraightFrontAndSpreadsTheRest) {
  Points points;
  for (int i = 0; i <= 8; ++i) {
    points.add(std::array<double, 2>{static_cast<double>(i), static_cast<double>(8 - i)});
  }
  EXPECT_THAT(take_best(points.set(), 3), ElementsAre(0, 4, 8));
  EXPECT_THAT(take_best(points.set(), 5), ElementsAre(0, 2, 4, 6, 8));
}

// Quadratic time would be minutes.
TEST(ParetoSets, HundredThousandPointsOfAPlaneAreQuick) {
  constexpr std::size_t kCount = 100000;
  Rng rng(12);
  Points front;
  Points cloud;
  Points chain;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<double>(i);
    front.add(std::array<double, 2>{x, -x});
    chain.add(std::array<double, 2>{x, x});
    cloud.add(std::array<double, 2>{rng.normal(), rng.normal()});
  }
  const std::array<double, 2> reference{kCount, kCount};
  EXPECT_EQ(pareto_front(front.set()).size(), kCount);
  EXPECT_EQ(front_layers(chain.set()).back(), kCount - 1);
  EXPECT_EQ(epsilon_front(front.set(), 1).size(), (kCount + 2) / 3);
  EXPECT_EQ(hypervolume_contributions(front.set(), reference)[kCount / 2], 1);
  EXPECT_EQ(hypervolume_contributions(chain.set(), reference)[0], 2.0 * kCount - 1);
  EXPECT_GT(hypervolume(front.set(), reference), 0);
  EXPECT_TRUE(knee(front.set()));
  EXPECT_EQ(take_best(front.set(), 10).size(), 10U);
  Points layers = front;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<double>(i);
    layers.add(std::array<double, 2>{x + 1, 1 - x});
  }
  EXPECT_EQ(take_best(layers.set(), kCount * 3 / 2).size(), kCount * 3 / 2);
  for (const Points* points : {&cloud, &chain}) {
    EXPECT_EQ(take_best(points->set(), kCount / 2).size(), kCount / 2);
  }
}

}  // namespace
}  // namespace foretune
