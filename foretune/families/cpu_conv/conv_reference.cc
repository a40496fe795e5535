#include "foretune/families/cpu_conv/conv_reference.h"

#include <algorithm>
#include <cstddef>

namespace foretune::cpu_conv {
namespace {

// Distances between elements of a tensor.
struct Strides {
  std::int64_t outer = 0;  // images, or filters
  std::int64_t group = 0;
  std::int64_t channel = 0;
  std::int64_t point = 0;
};

// `channels` are those of a group.
Strides strides_of(ConvLayout layout, std::int64_t groups, std::int64_t channels,
                   std::int64_t points) {
  return layout == ConvLayout::kChannelsLast
             ? Strides{points * groups * channels, channels, 1, groups * channels}
             : Strides{groups * channels * points, channels * points, points, 1};
}

// Calls visit(output point, input point, filter point) for every pair that a product joins.
template <class Visit>
void for_each_pair(const ConvProblem& problem, const Visit& visit) {
  const ConvSizes& s = problem.sizes();
  std::int64_t out = 0;
  for (std::int64_t od = 0; od < problem.depth_out(); ++od) {
    for (std::int64_t oh = 0; oh < problem.ho(); ++oh) {
      for (std::int64_t ow = 0; ow < problem.wo(); ++ow, ++out) {
        std::int64_t filter = 0;
        for (std::int64_t z = 0; z < s.z; ++z) {
          for (std::int64_t y = 0; y < s.y; ++y) {
            for (std::int64_t x = 0; x < s.x; ++x, ++filter) {
              const std::int64_t d = od * s.stride_d - s.pad_d + z * s.dilation_d;
              const std::int64_t h = oh * s.stride_h - s.pad_h + y * s.dilation_h;
              const std::int64_t w = ow * s.stride_w - s.pad_w + x * s.dilation_w;
              if (!problem.skips_tap(filter) && d >= 0 && d < s.di && h >= 0 && h < s.hi &&
                  w >= 0 && w < s.wi) {
                visit(out, (d * s.hi + h) * s.wi + w, filter);
              }
            }
          }
        }
      }
    }
  }
}

// The products of one point of a filter with the channels of one input point.
struct Products {
  std::int64_t input = 0;
  std::int64_t weight = 0;
  std::int64_t output = 0;
  std::int64_t input_step = 1;
  std::int64_t weight_step = 1;
  std::int64_t count = 0;
};

void add_products(const ConvTensors& tensors, std::span<double> result, ConvOperation operation,
                  const Products& at) {
  double* const to = result.data();
  // The tensor that is computed may be missing.
  const auto from = [](std::span<const double> tensor, std::int64_t first) {
    return tensor.empty() ? nullptr : tensor.data() + first;
  };
  const double* const input = from(tensors.input, at.input);
  const double* const weights = from(tensors.weights, at.weight);
  switch (operation) {
    case ConvOperation::kForward: {
      double sum = 0;
      for (std::int64_t c = 0; c < at.count; ++c) {
        sum += input[c * at.input_step] * weights[c * at.weight_step];
      }
      to[at.output] += sum;
      break;
    }
    case ConvOperation::kBackwardData: {
      const double factor = tensors.output[static_cast<std::size_t>(at.output)];
      for (std::int64_t c = 0; c < at.count; ++c) {
        to[at.input + c * at.input_step] += factor * weights[c * at.weight_step];
      }
      break;
    }
    case ConvOperation::kBackwardWeight: {
      const double factor = tensors.output[static_cast<std::size_t>(at.output)];
      for (std::int64_t c = 0; c < at.count; ++c) {
        to[at.weight + c * at.weight_step] += factor * input[c * at.input_step];
      }
      break;
    }
  }
}

}  // namespace

void reference_conv(const ConvProblem& problem, const ConvTensors& tensors,
                    std::span<double> result) {
  const ConvSizes& s = problem.sizes();
  const std::int64_t channels = s.c / s.g;
  const std::int64_t filters = s.k / s.g;
  const std::int64_t filter_points = s.z * s.y * s.x;
  const Strides in = strides_of(s.layout, s.g, channels, s.di * s.hi * s.wi);
  const Strides out =
      strides_of(s.layout, s.g, filters, problem.depth_out() * problem.ho() * problem.wo());
  // Weights are stored by group, filter, then as an image of one group.
  const Strides weight = strides_of(s.layout, 1, channels, filter_points);
  std::fill(result.begin(), result.end(), 0.0);
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t g = 0; g < s.g; ++g) {
      for_each_pair(problem, [&](std::int64_t to, std::int64_t from, std::int64_t point) {
        const std::int64_t input = n * in.outer + g * in.group + from * in.point;
        for (std::int64_t k = 0; k < filters; ++k) {
          const std::int64_t output =
              n * out.outer + g * out.group + k * out.channel + to * out.point;
          const std::int64_t filter =
              (g * filters + k) * channels * filter_points + point * weight.point;
          add_products(tensors, result, s.operation,
                       {.input = input,
                        .weight = filter,
                        .output = output,
                        .input_step = in.channel,
                        .weight_step = weight.channel,
                        .count = channels});
        }
      });
    }
  }
}

}  // namespace foretune::cpu_conv
