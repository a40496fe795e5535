#include "foretune/approx/separable.h"

#include <algorithm>
#include <limits>

#include "foretune/base/check.h"

namespace foretune::approx {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::int64_t smallest_loss(const std::vector<Choice>& layer) {
  return std::min_element(layer.begin(), layer.end(),
                          [](const Choice& a, const Choice& b) { return a.loss < b.loss; })
      ->loss;
}

}  // namespace

std::vector<SeparablePoint> separable_front(std::span<const std::vector<Choice>> layers,
                                            std::int64_t max_loss) {
  // Losses count from the smallest of each layer, so that none is below 0.
  std::int64_t base = 0;
  for (const std::vector<Choice>& layer : layers) {
    FORETUNE_CHECK(!layer.empty() && layer.size() <= 256);
    base += smallest_loss(layer);
  }
  if (base > max_loss) {
    return {};
  }
  const auto size = static_cast<std::size_t>(max_loss - base) + 1;
  // times[l]: the least time of the layers so far that lose exactly l more than they must.
  std::vector<double> times(size, kNever);
  times[0] = 0;
  std::vector<std::vector<std::uint8_t>> chosen;
  for (const std::vector<Choice>& layer : layers) {
    const std::int64_t least = smallest_loss(layer);
    std::vector<double> next(size, kNever);
    std::vector<std::uint8_t>& choices = chosen.emplace_back(size, std::uint8_t{0});
    for (std::size_t c = 0; c < layer.size(); ++c) {
      const auto step = static_cast<std::size_t>(layer[c].loss - least);
      for (std::size_t loss = step; loss < size; ++loss) {
        const double time = times[loss - step] + layer[c].time;
        if (time < next[loss]) {
          next[loss] = time;
          choices[loss] = static_cast<std::uint8_t>(c);
        }
      }
    }
    times = std::move(next);
  }
  std::vector<SeparablePoint> front;
  double best = kNever;
  for (std::size_t loss = 0; loss < size; ++loss) {
    if (times[loss] >= best) {
      continue;
    }
    best = times[loss];
    SeparablePoint point{
        .time = best, .loss = base + static_cast<std::int64_t>(loss), .choices = {}};
    point.choices.resize(layers.size());
    std::size_t rest = loss;
    for (std::size_t l = layers.size(); l-- > 0;) {
      point.choices[l] = chosen[l][rest];
      rest -= static_cast<std::size_t>(layers[l][point.choices[l]].loss - smallest_loss(layers[l]));
    }
    front.push_back(std::move(point));
  }
  std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace foretune::approx
