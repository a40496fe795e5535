// Finds every best trade-off where times and losses add up over layers: the multiple-choice
// knapsack problem, solved exactly by dynamic programming over the loss (Kellerer, Pferschy and
// Pisinger, "Knapsack Problems", 2004, chapter 11).
//
//   const std::vector<SeparablePoint> front = separable_front(layers, 500);
//   front[0].time;  // the fastest within 500 units of loss
//
// Thread safety: free functions. Cost: (sum of choices) * (range of losses) steps, and a byte for
// each layer and loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretune::approx {

// One way to run a layer. Losses are whole numbers, as images that are no longer classified
// rightly.
struct Choice {
  double time = 0;
  std::int64_t loss = 0;  // below 0 for a gain
};

struct SeparablePoint {
  double time = 0;
  std::int64_t loss = 0;
  std::vector<std::uint8_t> choices;  // a position for each layer
};

// Returns the points that no other selection of one choice a layer beats in time and loss, among
// those that lose at most `max_loss`: fastest first, of equal points one. A layer has 1 to 256
// choices, which are its own. Empty where even the smallest losses add up to more.
std::vector<SeparablePoint> separable_front(std::span<const std::vector<Choice>> layers,
                                            std::int64_t max_loss);

}  // namespace foretune::approx
