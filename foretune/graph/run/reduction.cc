#include "foretune/graph/run/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/weight_transform.h"

namespace foretune::graph {

namespace {

std::size_t index(std::int64_t position) { return static_cast<std::size_t>(position); }

// The weights as a matrix: a filter's weights are `channels` times `points`.
struct Extents {
  std::int64_t filters = 1;
  std::int64_t channels = 1;
  std::int64_t points = 1;
};

Extents extents_of(const Shape& shape) {
  return {.filters = shape[0],
          .channels = shape[1],
          .points = shape.size() == 4 ? shape[2] * shape[3] : 1};
}

std::int64_t left_out(std::int64_t all, const LayerVariant& v) {
  return all * v.reduction_by / v.reduction_of;
}

// Sets the `count` smallest of the weights at `places` to 0; of equal ones, the first.
void clear_smallest(std::span<float> weights, std::span<std::size_t> places, std::int64_t count) {
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(weights[a]) < std::abs(weights[b]);
  });
  for (const std::size_t place : places.first(index(count))) {
    weights[place] = 0;
  }
}

void prune(std::span<float> weights, const LayerVariant& v) {
  std::vector<std::size_t> places(weights.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  clear_smallest(weights, places, left_out(std::ssize(weights), v));
}

void prune_by_pattern(std::span<float> weights, const Extents& e, const LayerVariant& v) {
  std::vector<std::size_t> places;
  for (std::int64_t filter = 0; filter < e.filters; ++filter) {
    for (std::int64_t first = 0; first < e.channels; first += v.reduction_of) {
      const std::int64_t end = std::min(first + v.reduction_of, e.channels);
      for (std::int64_t point = 0; point < e.points; ++point) {
        places.clear();
        for (std::int64_t channel = first; channel < end; ++channel) {
          places.push_back(index((filter * e.channels + channel) * e.points + point));
        }
        clear_smallest(weights, places, left_out(end - first, v));
      }
    }
  }
}

void clear_channels(std::span<float> weights, const Extents& e, const LayerVariant& v) {
  const auto for_channel = [&](std::int64_t channel, const auto& work) {
    for (std::int64_t filter = 0; filter < e.filters; ++filter) {
      for (std::int64_t point = 0; point < e.points; ++point) {
        work(weights[index((filter * e.channels + channel) * e.points + point)]);
      }
    }
  };
  std::vector<double> squares(index(e.channels));
  for (std::int64_t channel = 0; channel < e.channels; ++channel) {
    for_channel(channel, [&](float weight) {
      squares[index(channel)] += static_cast<double>(weight) * static_cast<double>(weight);
    });
  }
  std::vector<std::int64_t> order(squares.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return squares[index(a)] < squares[index(b)];
  });
  order.resize(index(left_out(e.channels, v)));
  for (const std::int64_t channel : order) {
    for_channel(channel, [](float& weight) { weight = 0; });
  }
}

std::vector<float> multiplied_out(const Factors& factors, const Extents& e, std::int64_t rank) {
  const std::int64_t columns = e.channels * e.points;
  std::vector<float> product(index(e.filters * columns));
  for (std::int64_t row = 0; row < e.filters; ++row) {
    for (std::int64_t i = 0; i < rank; ++i) {
      const float factor = factors.left[index(row * rank + i)];
      for (std::int64_t column = 0; column < columns; ++column) {
        product[index(row * columns + column)] +=
            factor * factors.right[index(i * columns + column)];
      }
    }
  }
  return product;
}

Support can_have_rank(const Extents& e, const Shape& shape, const LayerVariant& v) {
  const std::int64_t columns = e.channels * e.points;
  const std::int64_t rank = reduced_rank(shape, v);
  if (left_out(std::min(e.filters, columns), v) == 0) {
    return Support::no("weights of rank ", std::min(e.filters, columns), " at most leave none out");
  }
  if (rank * (e.filters + columns) >= e.filters * columns) {
    return Support::no("two layers of rank ", rank, " multiply no fewer weights");
  }
  return Support::yes();
}

Support can_use_winograd(const Shape& shape, const Window& window) {
  return shape[2] == 3 && shape[3] == 3 && window.stride_h == 1 && window.stride_w == 1 &&
                 window.dilation_h == 1 && window.dilation_w == 1
             ? Support::yes()
             : Support::no("Winograd's algorithm is for 3 x 3 filters without stride and dilation");
}

}  // namespace

Support can_reduce(const Network& network, const Node& node, const LayerVariant& variant) {
  const Reduction kind = variant.reduction;
  if (kind == Reduction::kNone) {
    return variant.reduction_of == 0 && variant.reduction_by == 0
               ? Support::yes()
               : Support::no("parts are left out of nothing");
  }
  const Shape& shape = network.tensor(node.inputs[1]).shape;
  const bool is_conv = node.op->name == "conv";
  const Window window = is_conv ? conv_window(shape, node.attributes) : Window{};
  if (variant.zero_weights > 0) {
    return Support::no("a layer has one way to have fewer weights");
  }
  if (kind == Reduction::kOwn) {
    const WeightTransform* const own = find_weight_transform(variant.reduction_of);
    if (own == nullptr) {
      return Support::no("this program has no transform ", variant.reduction_of);
    }
    return own->can_apply(network, node);
  }
  if (kind == Reduction::kWinograd ? variant.reduction_of != 2 && variant.reduction_of != 4
                                   : variant.reduction_of < 2 || variant.reduction_by < 1 ||
                                         variant.reduction_by >= variant.reduction_of) {
    return Support::no(variant.reduction_by, " of ", variant.reduction_of, " parts make no sense");
  }
  if (is_conv && window.groups > 1) {
    return Support::no("layers of several groups keep their weights");
  }
  const Extents e = extents_of(shape);
  if (kind == Reduction::kChannels) {
    return left_out(e.channels, variant) > 0
               ? Support::yes()
               : Support::no("of ", e.channels, " channels none is left out");
  }
  if (variant.type != DataType::kF32 || variant.skips_points() || variant.skip_taps > 0 ||
      variant.before_activation) {
    return Support::no("low ranks, pruned weights and Winograd's algorithm are for f32 alone");
  }
  switch (kind) {
    case Reduction::kRank:
      return can_have_rank(e, shape, variant);
    case Reduction::kPattern:
      return e.channels >= variant.reduction_of
                 ? Support::yes()
                 : Support::no("there are only ", e.channels, " channels");
    case Reduction::kPruned:
      return left_out(element_count(shape), variant) > 0 ? Support::yes()
                                                         : Support::no("there are too few weights");
    case Reduction::kWinograd:
      return is_conv ? can_use_winograd(shape, window)
                     : Support::no("Winograd's algorithm is for convolutions");
    case Reduction::kNone:
    case Reduction::kChannels:
    case Reduction::kOwn:
      break;
  }
  return Support::yes();
}

std::int64_t reduced_rank(const Shape& shape, const LayerVariant& variant) {
  const Extents e = extents_of(shape);
  const std::int64_t most = std::min(e.filters, e.channels * e.points);
  return most - left_out(most, variant);
}

double stored_weights(const Shape& shape, const LayerVariant& variant) {
  const Extents e = extents_of(shape);
  const auto all = static_cast<double>(element_count(shape));
  const double left = variant.reduction_of == 0 ? 1
                                                : 1 - static_cast<double>(variant.reduction_by) /
                                                          static_cast<double>(variant.reduction_of);
  switch (variant.reduction) {
    case Reduction::kRank:
      return static_cast<double>(reduced_rank(shape, variant) *
                                 (e.filters + e.channels * e.points));
    case Reduction::kChannels:
      return all * left;
    case Reduction::kPruned:
    case Reduction::kPattern:
      return 2 * all * left;
    case Reduction::kWinograd: {
      const auto size = static_cast<double>(variant.reduction_of + 2);
      return all * size * size / static_cast<double>(e.points);
    }
    case Reduction::kNone:
    case Reduction::kOwn:
      break;
  }
  return variant.skip_taps > 0 ? all * (1 - 1 / static_cast<double>(variant.skip_taps)) : all;
}

Result<std::vector<float>> reduced_weights(std::span<const float> weights, const Shape& shape,
                                           const LayerVariant& variant) {
  const Extents e = extents_of(shape);
  std::vector<float> fewer(weights.begin(), weights.end());
  switch (variant.reduction) {
    case Reduction::kRank: {
      const std::int64_t rank = reduced_rank(shape, variant);
      return multiplied_out(factorise(weights, e.filters, rank), e, rank);
    }
    case Reduction::kChannels:
      clear_channels(fewer, e, variant);
      break;
    case Reduction::kPruned:
      prune(fewer, variant);
      break;
    case Reduction::kPattern:
      prune_by_pattern(fewer, e, variant);
      break;
    case Reduction::kOwn:
      FORETUNE_TRY_STATUS(find_weight_transform(variant.reduction_of)->apply(fewer, shape));
      break;
    case Reduction::kNone:
    case Reduction::kWinograd:
      break;
  }
  return fewer;
}

}  // namespace foretune::graph
