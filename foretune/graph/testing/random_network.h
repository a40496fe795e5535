// Draws small networks that mix all operations, for tests that compare two ways of computing them.
// Thread safety: free functions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/network.h"

namespace foretune::graph::testing {

inline std::vector<float> random_values(std::size_t count, Rng& rng, float low = -1,
                                        float high = 1) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(rng.uniform());
  }
  return values;
}

// Expects differences of at most `tolerance` times the largest number. Results far below 1 count as
// 1e-3: they come from numbers near 1, which cancel or lie in the tail of an activation.
template <class Found>
void expect_close(const std::vector<Found>& found, const std::vector<double>& wanted,
                  double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  double most = 1e-3;
  for (const double value : wanted) {
    most = std::max(most, std::abs(value));
  }
  if (!std::isfinite(most)) {
    return;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_LE(std::abs(static_cast<double>(found[i]) - wanted[i]), tolerance * most)
        << "element " << i << " is " << found[i] << ", not " << wanted[i];
  }
}

// Adds random operations to an image; each takes one of the last results.
class RandomNetwork {
 public:
  RandomNetwork(NetworkBuilder& builder, Rng& rng) : builder_(builder), rng_(rng) {}

  Result<Network> draw(int operations) {
    results_ = {builder_.input("image", {1, size(1, 5), size(4, 9), size(4, 9)})};
    for (int i = 0; i < operations; ++i) {
      add();
    }
    std::vector<TensorId> outputs{results_.back()};
    if (rng_.below(4) == 0 && results_.size() > 3) {
      outputs.push_back(results_[results_.size() / 2]);
    }
    if (builder_.find(outputs[0])->node < 0 || builder_.find(outputs.back())->node < 0) {
      outputs = {builder_.add("relu", "", {results_.back()})};
    }
    return builder_.finish(outputs);
  }

 private:
  std::int64_t size(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  TensorId pick() {
    const std::size_t recent = std::min<std::size_t>(results_.size(), 3);
    return results_[results_.size() - 1 - rng_.below(recent)];
  }
  TensorId constant(Shape shape, float low = -1, float high = 1) {
    std::vector<float> values =
        random_values(static_cast<std::size_t>(element_count(shape)), rng_, low, high);
    return builder_.constant("c", std::move(shape), std::move(values));
  }
  void keep(TensorId id) {
    if (id != kNoTensor) {
      results_.push_back(id);
    }
  }

  void add() {
    const TensorId x = pick();
    const Shape shape = builder_.shape(x);
    switch (rng_.below(12)) {
      case 0:
      case 1:
        shape.size() == 4 ? add_conv(x, shape) : add_linear(x, shape);
        break;
      case 2:
        keep(builder_.add("relu", "", {x}));
        break;
      case 3:
        add_unary(x);
        break;
      case 4:
      case 5:
        add_binary(x, shape);
        break;
      case 6:
        if (shape.size() == 4) {
          add_pool(x, shape);
        }
        break;
      case 7:
        if (shape.size() > 1) {
          keep(builder_.add("affine", "", {x, constant({shape[1]}), constant({shape[1]})}));
        }
        break;
      case 8:
        add_movement(x, shape);
        break;
      case 9:
        add_rows(x, shape);
        break;
      case 10:
        add_join(x, shape);
        break;
      default:
        add_reshape(x, shape);
        break;
    }
  }

  void add_conv(TensorId x, const Shape& shape) {
    const std::int64_t kernel =
        rng_.below(2) == 0 ? 1 : size(1, std::min<std::int64_t>(shape[2], 3));
    const std::int64_t other = rng_.below(3) == 0 ? size(1, std::min<std::int64_t>(shape[3], 3))
                                                  : std::min(kernel, shape[3]);
    const bool is_depthwise = rng_.below(3) == 0;
    const std::int64_t groups = is_depthwise ? shape[1] : 1;
    const std::int64_t filters = is_depthwise ? shape[1] * size(1, 2) : size(1, 20);
    const std::int64_t pad =
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(kernel)));
    const bool is_even = rng_.below(3) != 0;
    std::vector<TensorId> inputs{x, constant({filters, shape[1] / groups, kernel, other})};
    if (rng_.below(2) == 0) {
      inputs.push_back(constant({filters}));
    }
    TensorId result = builder_.add(
        "conv", "", inputs,
        {.integers = {
             size(1, 2), size(1, 2), pad, is_even ? other / 2 : 0,
             is_even ? pad
                     : static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(kernel))),
             other / 2, 1, 1, groups}});
    keep(result);
    if (rng_.below(2) == 0) {
      keep(builder_.add("affine", "", {result, constant({filters}), constant({filters})}));
    }
    if (rng_.below(2) == 0) {
      keep(builder_.add("relu", "", {results_.back()}));
    } else if (rng_.below(2) == 0) {
      // The form of a residual block.
      const TensorId sum = builder_.add("sigmoid", "", {results_.back()});
      const TensorId again = builder_.add("conv", "", {sum, constant({filters, filters, 1, 1})},
                                          {.integers = {1, 1, 0, 0, 0, 0, 1, 1, 1}});
      keep(builder_.add("relu", "", {builder_.add("add", "", {sum, again})}));
    }
  }

  void add_linear(TensorId x, const Shape& shape) {
    if (shape.size() < 2) {
      return;
    }
    const std::int64_t outputs = size(1, 12);
    std::vector<TensorId> inputs{x, constant({outputs, shape.back()})};
    if (rng_.below(2) == 0) {
      inputs.push_back(constant({outputs}));
    }
    keep(builder_.add("linear", "", inputs));
  }

  void add_unary(TensorId x) {
    static const std::vector<std::string> names{"sigmoid",   "tanh",    "erf",  "abs",
                                                "neg",       "gelu",    "silu", "hard_swish",
                                                "gelu_tanh", "softplus"};
    switch (rng_.below(4)) {
      case 0:
        keep(builder_.add("clip", "", {x}, {.numbers = {-0.5, 0.75}}));
        break;
      case 1:
        keep(builder_.add("leaky_relu", "", {x}, {.numbers = {0.125}}));
        break;
      default:
        keep(builder_.add(names[rng_.below(names.size())], "", {x}));
        break;
    }
  }

  void add_binary(TensorId x, const Shape& shape) {
    static const std::vector<std::string> names{"add", "sub", "mul", "max", "min", "div"};
    const std::size_t name = rng_.below(names.size());
    if (names[name] != "div") {
      for (const TensorId other : results_) {
        if (builder_.shape(other) == shape && rng_.below(2) == 0) {
          keep(builder_.add(names[name], "", {x, other}));
          return;
        }
      }
    }
    Shape broadcast = shape;
    for (std::int64_t& extent : broadcast) {
      extent = rng_.below(2) == 0 ? 1 : extent;
    }
    if (rng_.below(2) == 0) {
      broadcast.erase(broadcast.begin());
    }
    keep(builder_.add(names[name], "", {x, constant(broadcast, 0.5F, 1.5F)}));
  }

  void add_pool(TensorId x, const Shape& shape) {
    const std::int64_t kernel = size(1, std::min<std::int64_t>({shape[2], shape[3], 3}));
    const std::int64_t pad =
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(kernel)));
    keep(builder_.add(rng_.below(2) == 0 ? "max_pool" : "average_pool", "", {x},
                      {.integers = {kernel, kernel, size(1, 2), size(1, 2), pad, 0, pad, 0, 1, 1,
                                    size(0, 1), size(0, 1)}}));
  }

  void add_movement(TensorId x, const Shape& shape) {
    if (shape.size() < 2) {
      return;
    }
    const auto axis = size(1, static_cast<std::int64_t>(shape.size()) - 1);
    const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
    if (rng_.below(2) == 0) {
      const std::int64_t begin = size(0, extent - 1);
      keep(builder_.add("slice", "", {x},
                        {.integers = {axis, begin, size(begin + 1, extent), size(1, 2)}}));
      return;
    }
    if (rng_.below(2) == 0) {
      Attributes pads{.integers = std::vector<std::int64_t>(2 * shape.size(), 0), .numbers = {0.5}};
      pads.integers[static_cast<std::size_t>(axis)] = size(0, 2);
      pads.integers[shape.size() + static_cast<std::size_t>(axis)] = size(0, 2);
      keep(builder_.add("pad", "", {x}, pads));
      return;
    }
    std::vector<std::int64_t> order(shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<std::int64_t>(i);
    }
    for (std::size_t i = order.size(); i-- > 2;) {
      std::swap(order[i], order[1 + rng_.below(i)]);
    }
    keep(builder_.add("transpose", "", {x}, {.integers = order}));
  }

  void add_rows(TensorId x, const Shape& shape) {
    if (shape.size() < 2) {
      return;
    }
    const auto last = static_cast<std::int64_t>(shape.size()) - 1;
    switch (rng_.below(4)) {
      case 0:
        keep(builder_.add("softmax", "", {x}, {.integers = {size(1, last)}}));
        break;
      case 1:
        keep(builder_.add("layer_norm", "", {x, constant({shape.back()}), constant({shape.back()})},
                          {.integers = {last}, .numbers = {1e-3}}));
        break;
      case 2:
        if (shape.size() == 4) {
          keep(builder_.add("local_norm", "", {x}, {.integers = {3}, .numbers = {0.1, 0.75, 1.0}}));
        }
        break;
      default: {
        Attributes axes{.integers = {size(0, 1), size(1, last)}};
        if (shape.size() == 4 && rng_.below(2) == 0) {
          axes.integers = {axes.integers[0], 2, 3};
        }
        static const std::vector<std::string> names{"reduce_mean", "reduce_sum", "reduce_max"};
        const std::string& name = names[rng_.below(names.size())];
        const TensorId reduced = builder_.add(name, "", {x}, axes);
        keep(reduced);
        if (axes.integers[0] != 0) {
          keep(builder_.add("mul", "", {x, reduced}));
        }
        break;
      }
    }
  }

  void add_join(TensorId x, const Shape& shape) {
    if (shape.size() < 2) {
      return;
    }
    if (shape.size() > 2 && rng_.below(2) == 0) {
      std::vector<std::int64_t> order{0, 1, 2, 3, 4, 5};
      order.resize(shape.size());
      std::swap(order[shape.size() - 2], order[shape.size() - 1]);
      if (shape.size() == 3 || shape.size() == 4) {
        keep(builder_.add("matmul", "",
                          {x, builder_.add("transpose", "", {x}, {.integers = order})}));
      }
      return;
    }
    std::vector<TensorId> parts{x};
    for (const TensorId other : results_) {
      if (builder_.shape(other) == shape && rng_.below(2) == 0) {
        parts.push_back(other);
      }
    }
    if (rng_.below(2) == 0) {
      parts.push_back(constant(shape));
    }
    keep(builder_.add("concat", "", parts,
                      {.integers = {size(1, static_cast<std::int64_t>(shape.size()) - 1)}}));
  }

  void add_reshape(TensorId x, const Shape& shape) {
    if (rng_.below(3) != 0) {
      return;
    }
    if (shape.size() == 4) {
      if (rng_.below(2) == 0) {
        keep(builder_.add("reshape", "", {x}, {.integers = {1, shape[1], shape[2] * shape[3]}}));
      } else {
        keep(builder_.add("reshape", "", {x}, {.integers = {1, element_count(shape)}}));
      }
    } else {
      keep(builder_.add("reshape", "", {x}, {.integers = {1, element_count(shape), 1, 1}}));
    }
  }

  NetworkBuilder& builder_;
  Rng& rng_;
  std::vector<TensorId> results_;
};

inline Result<Network> random_network(Rng& rng, int operations) {
  NetworkBuilder builder("random");
  return RandomNetwork(builder, rng).draw(operations);
}

}  // namespace foretune::graph::testing
