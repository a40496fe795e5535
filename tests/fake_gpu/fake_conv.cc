#include "tests/fake_gpu/fake_conv.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tests/fake_gpu/fake_kernels.h"

namespace foretune::fake_gpu {
namespace {

std::uint64_t product(const std::int32_t* sizes) {
  return static_cast<std::uint64_t>(sizes[0]) * static_cast<std::uint64_t>(sizes[1]) *
         static_cast<std::uint64_t>(sizes[2]);
}

// The sizes of the three tensors, and where their elements are.
class Geometry {
 public:
  explicit Geometry(const cuda::ConvShape& shape)
      : shape_(shape),
        n_(static_cast<std::uint64_t>(shape.n)),
        in_(product(shape.in)),
        out_(product(shape.out)),
        taps_(product(shape.filter)),
        c_(static_cast<std::uint64_t>(shape.c)),
        k_(static_cast<std::uint64_t>(shape.k)),
        groups_(static_cast<std::uint64_t>(shape.groups)) {}

  [[nodiscard]] std::uint64_t inputs() const { return n_ * in_ * groups_ * c_; }
  [[nodiscard]] std::uint64_t weights() const { return groups_ * k_ * taps_ * c_; }
  [[nodiscard]] std::uint64_t outputs() const { return n_ * out_ * groups_ * k_; }
  [[nodiscard]] std::uint64_t input(std::uint64_t image, std::uint64_t channel,
                                    std::uint64_t point) const {
    return place(image, channel, point, groups_ * c_, in_);
  }
  [[nodiscard]] std::uint64_t weight(std::uint64_t filter, std::uint64_t channel,
                                     std::uint64_t tap) const {
    return place(filter, channel, tap, c_, taps_);
  }
  [[nodiscard]] std::uint64_t output(std::uint64_t image, std::uint64_t filter,
                                     std::uint64_t point) const {
    return place(image, filter, point, groups_ * k_, out_);
  }

  // Calls visit(image, filter, channel of its group, output point, input point, tap) for every
  // product.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::uint64_t tap = 0; tap < taps_; ++tap) {
      for (std::uint64_t point = 0; point < out_; ++point) {
        std::uint64_t from = 0;
        if (!input_point(point, tap, from)) {
          continue;
        }
        for (std::uint64_t image = 0; image < n_; ++image) {
          for (std::uint64_t filter = 0; filter < groups_ * k_; ++filter) {
            for (std::uint64_t channel = 0; channel < c_; ++channel) {
              visit(image, filter, channel, point, from, tap);
            }
          }
        }
      }
    }
  }
  [[nodiscard]] std::uint64_t channel_of(std::uint64_t filter, std::uint64_t channel) const {
    return filter / k_ * c_ + channel;
  }
  [[nodiscard]] std::uint64_t filters() const { return groups_ * k_; }
  [[nodiscard]] std::uint64_t inner() const {
    return shape_.channels_last != 0 ? 1 : std::max<std::uint64_t>(1, out_);
  }

 private:
  [[nodiscard]] std::uint64_t place(std::uint64_t outer, std::uint64_t channel, std::uint64_t point,
                                    std::uint64_t channels, std::uint64_t points) const {
    return shape_.channels_last != 0 ? (outer * points + point) * channels + channel
                                     : (outer * channels + channel) * points + point;
  }
  bool input_point(std::uint64_t point, std::uint64_t tap, std::uint64_t& from) const {
    std::array<std::int64_t, 3> at{};
    for (std::size_t i = 3; i-- > 0;) {
      const auto out = static_cast<std::uint64_t>(shape_.out[i]);
      const auto filter = static_cast<std::uint64_t>(shape_.filter[i]);
      at[i] = static_cast<std::int64_t>(point % out) * shape_.stride[i] - shape_.pad[i] +
              static_cast<std::int64_t>(tap % filter) * shape_.dilation[i];
      point /= out;
      tap /= filter;
      if (at[i] < 0 || at[i] >= shape_.in[i]) {
        return false;
      }
    }
    from = static_cast<std::uint64_t>((at[0] * shape_.in[1] + at[1]) * shape_.in[2] + at[2]);
    return true;
  }

  cuda::ConvShape shape_;
  std::uint64_t n_;
  std::uint64_t in_;
  std::uint64_t out_;
  std::uint64_t taps_;
  std::uint64_t c_;
  std::uint64_t k_;
  std::uint64_t groups_;
};

bool read(const Memory& memory, const ConvTensor& tensor, std::uint64_t count,
          std::vector<float>& to) {
  const std::byte* const from = memory.readable(tensor.pointer, count * element_bytes(tensor.type));
  if (from == nullptr) {
    return false;
  }
  to.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    to[i] = load_element(from, tensor.type, i);
  }
  return true;
}

}  // namespace

std::uint64_t conv_result_elements(const cuda::ConvShape& shape) {
  const Geometry geometry(shape);
  return shape.operation == 0   ? geometry.outputs()
         : shape.operation == 1 ? geometry.inputs()
                                : geometry.weights();
}

double conv_flops(const cuda::ConvShape& shape) {
  return 2 * static_cast<double>(Geometry(shape).outputs()) *
         static_cast<double>(product(shape.filter)) * shape.c;
}

bool run_conv(Memory& memory, const Conv& conv) {
  const Geometry geometry(conv.shape);
  const int operation = conv.shape.operation;
  std::vector<float> input;
  std::vector<float> weights;
  std::vector<float> output;
  std::vector<double> sums(conv_result_elements(conv.shape), 0.0);
  if ((operation != 1 && !read(memory, conv.input, geometry.inputs(), input)) ||
      (operation != 2 && !read(memory, conv.weights, geometry.weights(), weights)) ||
      (operation != 0 && !read(memory, conv.output, geometry.outputs(), output))) {
    return false;
  }
  geometry.for_each([&](std::uint64_t image, std::uint64_t filter, std::uint64_t channel,
                        std::uint64_t point, std::uint64_t from, std::uint64_t tap) {
    const std::uint64_t in = geometry.input(image, geometry.channel_of(filter, channel), from);
    const std::uint64_t weight = geometry.weight(filter, channel, tap);
    const std::uint64_t out = geometry.output(image, filter, point);
    if (operation == 0) {
      sums[out] += static_cast<double>(input[in]) * static_cast<double>(weights[weight]);
    } else if (operation == 1) {
      sums[in] += static_cast<double>(output[out]) * static_cast<double>(weights[weight]);
    } else {
      sums[weight] += static_cast<double>(output[out]) * static_cast<double>(input[in]);
    }
  });
  std::vector<float> bias;
  std::vector<float> added;
  if ((conv.bias.pointer != 0 && !read(memory, conv.bias, geometry.filters(), bias)) ||
      (conv.added.pointer != 0 && !read(memory, conv.added, geometry.outputs(), added))) {
    return false;
  }
  const ConvTensor& target = operation == 0   ? conv.output
                             : operation == 1 ? conv.input
                                              : conv.weights;
  std::byte* const to = memory.writable(target.pointer, sums.size() * element_bytes(target.type));
  if (to == nullptr) {
    return false;
  }
  const std::uint64_t written = sums.size() - (conv.last_not_written ? 1 : 0);
  for (std::uint64_t i = 0; i < written; ++i) {
    double value = sums[i];
    value += bias.empty() ? 0.0 : static_cast<double>(bias[i / geometry.inner() % bias.size()]);
    value += added.empty() ? 0.0 : static_cast<double>(added[i]);
    value = conv.relu ? std::max(value, 0.0) : value;
    value += conv.wrong && i == sums.size() / 2 ? 1000 : 0;
    store_element(to, target.type, i, static_cast<float>(value));
  }
  return true;
}

}  // namespace foretune::fake_gpu
