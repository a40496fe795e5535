// Convolutions of one or two dimensions; one has rows of extent 1.
#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

constexpr std::size_t kConvIntegers = 9;
constexpr std::int64_t kMaxWindow = 1 << 16U;

Result<Shape> conv_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  const std::span<const std::int64_t> weights = inputs[1].shape;
  if (x.size() != 4 || weights.size() != 4) {
    return fail(ErrorCode::kInvalidArgument, "a convolution takes 4 dimensions, not ", to_text(x),
                " with weights ", to_text(weights));
  }
  for (const std::int64_t value : attributes.integers) {
    if (value < 0 || value > kMaxWindow) {
      return fail(ErrorCode::kInvalidArgument, "an attribute of a convolution is ", value);
    }
  }
  const Window window = conv_window(weights, attributes);
  if (window.stride_h < 1 || window.stride_w < 1 || window.dilation_h < 1 ||
      window.dilation_w < 1 || window.groups < 1) {
    return fail(ErrorCode::kInvalidArgument, "strides, dilations and groups are at least 1");
  }
  if (x[1] != weights[1] * window.groups || weights[0] % window.groups != 0) {
    return fail(ErrorCode::kInvalidArgument, "weights ", to_text(weights), " in ", window.groups,
                " groups do not fit an input of ", x[1], " channels");
  }
  const std::int64_t rows = window.rows(x[2]);
  const std::int64_t columns = window.columns(x[3]);
  if (rows < 1 || columns < 1) {
    return fail(ErrorCode::kInvalidArgument, "a filter of ", window.kernel_h, "x", window.kernel_w,
                " does not fit ", x[2], "x", x[3], " points");
  }
  if (inputs.size() == 3 && element_count(inputs[2].shape) != weights[0]) {
    return fail(ErrorCode::kInvalidArgument, "a bias of ", element_count(inputs[2].shape),
                " numbers does not fit ", weights[0], " filters");
  }
  return Shape{x[0], weights[0], rows, columns};
}

void compute_conv(std::span<const OperandValues> inputs, const Attributes& attributes,
                  std::span<const std::int64_t> shape, std::span<double> result) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  const std::span<const std::int64_t> weights = inputs[1].shape;
  const Window w = conv_window(weights, attributes);
  const std::int64_t filters_of_group = weights[0] / w.groups;
  std::size_t place = 0;
  for (std::int64_t image = 0; image < shape[0]; ++image) {
    for (std::int64_t filter = 0; filter < shape[1]; ++filter) {
      const std::int64_t first_channel = filter / filters_of_group * weights[1];
      for (std::int64_t row = 0; row < shape[2]; ++row) {
        for (std::int64_t column = 0; column < shape[3]; ++column) {
          double sum =
              inputs.size() == 3 ? inputs[2].values[static_cast<std::size_t>(filter)] : 0.0;
          for (std::int64_t c = 0; c < weights[1]; ++c) {
            for (std::int64_t i = 0; i < w.kernel_h; ++i) {
              const std::int64_t y = row * w.stride_h - w.pad_top + i * w.dilation_h;
              if (y < 0 || y >= x[2]) {
                continue;
              }
              for (std::int64_t j = 0; j < w.kernel_w; ++j) {
                const std::int64_t z = column * w.stride_w - w.pad_left + j * w.dilation_w;
                if (z < 0 || z >= x[3]) {
                  continue;
                }
                const std::int64_t from =
                    ((image * x[1] + first_channel + c) * x[2] + y) * x[3] + z;
                const std::int64_t by =
                    ((filter * weights[1] + c) * w.kernel_h + i) * w.kernel_w + j;
                sum += inputs[0].values[static_cast<std::size_t>(from)] *
                       inputs[1].values[static_cast<std::size_t>(by)];
              }
            }
          }
          result[place++] = sum;
        }
      }
    }
  }
}

double count_conv(std::span<const OperandShape> inputs, std::span<const std::int64_t> shape) {
  return static_cast<double>(element_count(shape)) *
         static_cast<double>(extent_of(inputs[1].shape, 1, 4));
}

}  // namespace

std::int64_t Window::rows(std::int64_t rows_in) const {
  const std::int64_t room = rows_in + pad_top + pad_bottom - (kernel_h - 1) * dilation_h - 1;
  if (room < 0) {
    return 0;
  }
  const std::int64_t whole = room / stride_h + 1;
  // A window that is there because of rounding up has to begin before the padding at the end.
  const bool more = ceil && room % stride_h != 0 && whole * stride_h < rows_in + pad_top;
  return more ? whole + 1 : whole;
}

std::int64_t Window::columns(std::int64_t columns_in) const {
  Window turned = *this;
  turned.kernel_h = kernel_w;
  turned.stride_h = stride_w;
  turned.pad_top = pad_left;
  turned.pad_bottom = pad_right;
  turned.dilation_h = dilation_w;
  return turned.rows(columns_in);
}

Window conv_window(std::span<const std::int64_t> weights, const Attributes& conv) {
  const std::vector<std::int64_t>& v = conv.integers;
  return {.kernel_h = weights[2],
          .kernel_w = weights[3],
          .stride_h = v[0],
          .stride_w = v[1],
          .pad_top = v[2],
          .pad_left = v[3],
          .pad_bottom = v[4],
          .pad_right = v[5],
          .dilation_h = v[6],
          .dilation_w = v[7],
          .groups = v[8]};
}

const OpInfo& conv_op() {
  static const OpInfo info{.name = "conv",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .integers = kConvIntegers,
                           .shape = &conv_shape,
                           .compute = &compute_conv,
                           .multiply_adds = &count_conv};
  return info;
}

}  // namespace foretune::graph
