// A task that is quick to compute, for tests.
// Thread safety: free function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/task.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph::testing {

// Returns a network of two convolutions and a product, with 70 images of each kind. Their labels
// are drawn.
inline Task small_task(std::uint64_t seed) {
  Rng rng(seed);
  const auto values = [&](std::size_t count) { return random_values(count, rng); };
  NetworkBuilder builder("small");
  const TensorId image = builder.input("image", {1, 1, 8, 8});
  const TensorId w1 = builder.constant("w1", {8, 1, 3, 3}, values(72));
  const TensorId b1 = builder.constant("b1", {8}, values(8));
  const TensorId first =
      builder.add("conv", "first", {image, w1, b1}, {.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}});
  const TensorId w2 = builder.constant("w2", {8, 8, 3, 3}, values(576));
  const TensorId second = builder.add("conv", "second", {builder.add("relu", "", {first}), w2},
                                      {.integers = {2, 2, 1, 1, 1, 1, 1, 1, 1}});
  const TensorId flat = builder.add("reshape", "", {second}, {.integers = {1, 128}});
  const TensorId w3 = builder.constant("w3", {4, 128}, values(512));
  const TensorId last = builder.add("linear", "last", {flat, w3});
  Task task{.network = *builder.finish({last}), .scale = 1.0F / 255, .shift = -0.5F};
  for (LabelledImages* images : {&task.tuning, &task.test}) {
    for (int i = 0; i < 70; ++i) {
      images->labels.push_back(static_cast<std::int32_t>(rng.below(4)));
      for (int pixel = 0; pixel < 64; ++pixel) {
        images->pixels.push_back(static_cast<std::uint8_t>(rng.below(256)));
      }
    }
  }
  return task;
}

}  // namespace foretune::graph::testing
