// Operations along one or several dimensions: means, softmax, normalisation.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

Result<Shape> reduce_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  if (attributes.integers.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "a reduction names no dimension");
  }
  std::vector<bool> reduced(x.size(), false);
  for (std::size_t i = 1; i < attributes.integers.size(); ++i) {
    FORETUNE_TRY_STATUS(check_axis(attributes.integers[i], x.size()));
    reduced[static_cast<std::size_t>(attributes.integers[i])] = true;
  }
  Shape shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) {
      shape.push_back(x[i]);
    } else if (attributes.integers[0] != 0) {
      shape.push_back(1);
    }
  }
  return shape;
}

enum class Reduction : std::uint8_t { kMean, kSum, kMax };

template <Reduction kReduction>
void compute_reduce(std::span<const OperandValues> inputs, const Attributes& attributes,
                    std::span<const std::int64_t> /*shape*/, std::span<double> result) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  std::vector<std::size_t> steps(x.size(), 0);  // in the result; 0 for reduced dimensions
  std::size_t step = 1;
  std::size_t terms = 1;
  for (std::size_t i = x.size(); i-- > 0;) {
    const auto axes = std::span(attributes.integers).subspan(1);
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end()) {
      terms *= static_cast<std::size_t>(x[i]);
    } else {
      steps[i] = step;
      step *= static_cast<std::size_t>(x[i]);
    }
  }
  std::fill(result.begin(), result.end(),
            kReduction == Reduction::kMax ? -std::numeric_limits<double>::infinity() : 0.0);
  for (std::size_t place = 0; place < inputs[0].values.size(); ++place) {
    std::size_t to = 0;
    std::size_t rest = place;
    for (std::size_t i = x.size(); i-- > 0;) {
      const auto extent = static_cast<std::size_t>(x[i]);
      to += rest % extent * steps[i];
      rest /= extent;
    }
    const double value = inputs[0].values[place];
    result[to] = kReduction == Reduction::kMax ? std::max(result[to], value) : result[to] + value;
  }
  if (kReduction == Reduction::kMean) {
    for (double& value : result) {
      value /= static_cast<double>(terms);
    }
  }
}

template <Reduction kReduction>
OpInfo reduce_op(std::string_view name) {
  return {.name = name,
          .integers = kAnyNumber,
          .shape = &reduce_shape,
          .compute = &compute_reduce<kReduction>};
}

Result<Shape> softmax_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  FORETUNE_TRY_STATUS(check_axis(attributes.integers[0], inputs[0].shape.size()));
  return same_shape(inputs, attributes);
}

void compute_softmax(std::span<const OperandValues> inputs, const Attributes& attributes,
                     std::span<const std::int64_t> shape, std::span<double> result) {
  const auto axis = static_cast<std::size_t>(attributes.integers[0]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const auto step = static_cast<std::size_t>(extent_of(shape, axis + 1, shape.size()));
  for (std::size_t row = 0; row < result.size() / extent; ++row) {
    const std::size_t first = row / step * step * extent + row % step;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < extent; ++i) {
      most = std::max(most, inputs[0].values[first + i * step]);
    }
    double sum = 0;
    for (std::size_t i = 0; i < extent; ++i) {
      result[first + i * step] = std::exp(inputs[0].values[first + i * step] - most);
      sum += result[first + i * step];
    }
    for (std::size_t i = 0; i < extent; ++i) {
      result[first + i * step] /= sum;
    }
  }
}

Result<Shape> layer_norm_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  FORETUNE_TRY_STATUS(check_axis(attributes.integers[0], x.size()));
  const std::int64_t extent =
      extent_of(x, static_cast<std::size_t>(attributes.integers[0]), x.size());
  for (const OperandShape& operand : inputs.subspan(1)) {
    if (element_count(operand.shape) != extent || !operand.is_constant) {
      return fail(ErrorCode::kInvalidArgument, "scale and shift of a layer_norm have ", extent,
                  " constant numbers each");
    }
  }
  return same_shape(inputs, attributes);
}

void compute_layer_norm(std::span<const OperandValues> inputs, const Attributes& attributes,
                        std::span<const std::int64_t> shape, std::span<double> result) {
  const auto extent = static_cast<std::size_t>(
      extent_of(shape, static_cast<std::size_t>(attributes.integers[0]), shape.size()));
  for (std::size_t first = 0; first < result.size(); first += extent) {
    const std::span<const double> x = inputs[0].values.subspan(first, extent);
    double mean = 0;
    for (const double value : x) {
      mean += value / static_cast<double>(extent);
    }
    double variance = 0;
    for (const double value : x) {
      variance += (value - mean) * (value - mean) / static_cast<double>(extent);
    }
    const double factor = 1 / std::sqrt(variance + attributes.numbers[0]);
    for (std::size_t i = 0; i < extent; ++i) {
      const double scale = inputs.size() > 1 ? inputs[1].values[i] : 1.0;
      const double shift = inputs.size() > 2 ? inputs[2].values[i] : 0.0;
      result[first + i] = (x[i] - mean) * factor * scale + shift;
    }
  }
}

Result<Shape> local_norm_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  if (inputs[0].shape.size() < 2 || attributes.integers[0] < 1) {
    return fail(ErrorCode::kInvalidArgument, "a local_norm is over at least 1 channel of an input");
  }
  return same_shape(inputs, attributes);
}

void compute_local_norm(std::span<const OperandValues> inputs, const Attributes& attributes,
                        std::span<const std::int64_t> shape, std::span<double> result) {
  const std::int64_t size = attributes.integers[0];
  const std::int64_t channels = shape[1];
  const auto points = static_cast<std::size_t>(extent_of(shape, 2, shape.size()));
  for (std::size_t place = 0; place < result.size(); ++place) {
    const auto channel = static_cast<std::int64_t>(place / points) % channels;
    const std::size_t first = place - static_cast<std::size_t>(channel) * points;
    double squares = 0;
    for (std::int64_t c = std::max<std::int64_t>(0, channel - (size - 1) / 2);
         c <= std::min(channels - 1, channel + size / 2); ++c) {
      const double value = inputs[0].values[first + static_cast<std::size_t>(c) * points];
      squares += value * value;
    }
    const std::vector<double>& n = attributes.numbers;
    result[place] =
        inputs[0].values[place] / std::pow(n[2] + n[0] / static_cast<double>(size) * squares, n[1]);
  }
}

}  // namespace

const OpInfo& reduce_mean_op() {
  static const OpInfo info = reduce_op<Reduction::kMean>("reduce_mean");
  return info;
}
const OpInfo& reduce_sum_op() {
  static const OpInfo info = reduce_op<Reduction::kSum>("reduce_sum");
  return info;
}
const OpInfo& reduce_max_op() {
  static const OpInfo info = reduce_op<Reduction::kMax>("reduce_max");
  return info;
}

const OpInfo& softmax_op() {
  static const OpInfo info{
      .name = "softmax", .integers = 1, .shape = &softmax_shape, .compute = &compute_softmax};
  return info;
}

const OpInfo& layer_norm_op() {
  static const OpInfo info{.name = "layer_norm",
                           .max_inputs = 3,
                           .integers = 1,
                           .numbers = 1,
                           .shape = &layer_norm_shape,
                           .compute = &compute_layer_norm};
  return info;
}

const OpInfo& local_norm_op() {
  static const OpInfo info{.name = "local_norm",
                           .integers = 1,
                           .numbers = 3,
                           .shape = &local_norm_shape,
                           .compute = &compute_local_norm};
  return info;
}

}  // namespace foretune::graph
