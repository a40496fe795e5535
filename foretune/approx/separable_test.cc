#include "foretune/approx/separable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::approx {
namespace {

std::vector<std::vector<Choice>> draw_layers(std::size_t layers, std::size_t most, Rng& rng) {
  std::vector<std::vector<Choice>> out(layers);
  for (std::vector<Choice>& layer : out) {
    layer.resize(1 + rng.below(most));
    for (Choice& choice : layer) {
      choice = {.time = static_cast<double>(rng.between(1, 30)), .loss = rng.between(-3, 12)};
    }
  }
  return out;
}

using Point = std::pair<double, std::int64_t>;

// Tries all selections.
std::vector<Point> front_by_hand(const std::vector<std::vector<Choice>>& layers,
                                 std::int64_t max_loss) {
  std::vector<Point> all{{0, 0}};
  for (const std::vector<Choice>& layer : layers) {
    std::vector<Point> next;
    for (const Point& point : all) {
      for (const Choice& choice : layer) {
        next.emplace_back(point.first + choice.time, point.second + choice.loss);
      }
    }
    all = std::move(next);
  }
  std::erase_if(all, [&](const Point& point) { return point.second > max_loss; });
  std::sort(all.begin(), all.end());
  std::vector<Point> front;
  for (const Point& point : all) {
    if (front.empty() || point.second < front.back().second) {
      front.push_back(point);
    }
  }
  return front;
}

TEST(SeparableFront, IsThatOfAllSelections) {
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const auto layers = draw_layers(1 + rng.below(5), 5, rng);
    const std::int64_t max_loss = rng.between(-5, 30);
    const std::vector<SeparablePoint> front = separable_front(layers, max_loss);
    std::vector<Point> found;
    for (const SeparablePoint& point : front) {
      Point sum{0, 0};
      ASSERT_EQ(point.choices.size(), layers.size());
      for (std::size_t l = 0; l < layers.size(); ++l) {
        sum.first += layers[l][point.choices[l]].time;
        sum.second += layers[l][point.choices[l]].loss;
      }
      EXPECT_EQ(sum, Point(point.time, point.loss));
      found.push_back(sum);
    }
    EXPECT_EQ(found, front_by_hand(layers, max_loss)) << i;
  }
}

// 50 layers of 16 knobs, and 1,000 images that may be lost. The bound leaves room for sanitizers.
TEST(SeparableFront, OfALargeNetworkIsQuick) {
  Rng rng(2);
  std::vector<std::vector<Choice>> layers(50);
  for (std::vector<Choice>& layer : layers) {
    layer.push_back({.time = 100, .loss = 0});
    for (int k = 1; k < 16; ++k) {
      layer.push_back({.time = 20 + 60 * rng.uniform(), .loss = rng.between(-2, 80)});
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<SeparablePoint> front = separable_front(layers, 1000);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(front.size(), 100U);
  EXPECT_LT(seconds.count(), 2);
}

}  // namespace
}  // namespace foretune::approx
