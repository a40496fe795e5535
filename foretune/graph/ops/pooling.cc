// Maximum and mean of windows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

namespace {

constexpr std::size_t kPoolIntegers = 12;
constexpr std::int64_t kMaxWindow = 1 << 16U;

Result<Shape> pool_shape(std::span<const OperandShape> inputs, const Attributes& attributes) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  if (x.size() != 4) {
    return fail(ErrorCode::kInvalidArgument, "pooling takes 4 dimensions, not ", to_text(x));
  }
  for (const std::int64_t value : attributes.integers) {
    if (value < 0 || value > kMaxWindow) {
      return fail(ErrorCode::kInvalidArgument, "an attribute of pooling is ", value);
    }
  }
  const Window w = pool_window(attributes);
  if (w.kernel_h < 1 || w.kernel_w < 1 || w.stride_h < 1 || w.stride_w < 1 || w.dilation_h < 1 ||
      w.dilation_w < 1) {
    return fail(ErrorCode::kInvalidArgument, "windows, strides and dilations are at least 1");
  }
  const bool is_padded = w.pad_top + w.pad_left + w.pad_bottom + w.pad_right > 0;
  if (is_padded && w.dilation_h * w.dilation_w > 1) {
    return fail(ErrorCode::kInvalidArgument, "pooling has either padding or dilation");
  }
  if (std::max(w.pad_top, w.pad_bottom) >= (w.kernel_h - 1) * w.dilation_h + 1 ||
      std::max(w.pad_left, w.pad_right) >= (w.kernel_w - 1) * w.dilation_w + 1) {
    return fail(ErrorCode::kInvalidArgument, "a window lies within the padding");
  }
  const std::int64_t rows = w.rows(x[2]);
  const std::int64_t columns = w.columns(x[3]);
  if (rows < 1 || columns < 1) {
    return fail(ErrorCode::kInvalidArgument, "a window of ", w.kernel_h, "x", w.kernel_w,
                " does not fit ", x[2], "x", x[3], " points");
  }
  return Shape{x[0], x[1], rows, columns};
}

template <bool kIsMax>
void compute_pool(std::span<const OperandValues> inputs, const Attributes& attributes,
                  std::span<const std::int64_t> shape, std::span<double> result) {
  const std::span<const std::int64_t> x = inputs[0].shape;
  const Window w = pool_window(attributes);
  std::size_t place = 0;
  for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    for (std::int64_t row = 0; row < shape[2]; ++row) {
      for (std::int64_t column = 0; column < shape[3]; ++column) {
        double most = -std::numeric_limits<double>::infinity();
        double sum = 0;
        double inside = 0;
        double padded = 0;
        for (std::int64_t i = 0; i < w.kernel_h; ++i) {
          const std::int64_t y = row * w.stride_h - w.pad_top + i * w.dilation_h;
          for (std::int64_t j = 0; j < w.kernel_w; ++j) {
            const std::int64_t z = column * w.stride_w - w.pad_left + j * w.dilation_w;
            if (y < x[2] + w.pad_bottom && z < x[3] + w.pad_right) {
              padded += 1;
            }
            if (y < 0 || z < 0 || y >= x[2] || z >= x[3]) {
              continue;
            }
            const double value =
                inputs[0].values[static_cast<std::size_t>((plane * x[2] + y) * x[3] + z)];
            most = std::max(most, value);
            sum += value;
            inside += 1;
          }
        }
        result[place++] = kIsMax ? most : sum / (w.count_padding ? padded : inside);
      }
    }
  }
}

}  // namespace

Window pool_window(const Attributes& pool) {
  const std::vector<std::int64_t>& v = pool.integers;
  return {.kernel_h = v[0],
          .kernel_w = v[1],
          .stride_h = v[2],
          .stride_w = v[3],
          .pad_top = v[4],
          .pad_left = v[5],
          .pad_bottom = v[6],
          .pad_right = v[7],
          .dilation_h = v[8],
          .dilation_w = v[9],
          .ceil = v[10] != 0,
          .count_padding = v[11] != 0};
}

const OpInfo& max_pool_op() {
  static const OpInfo info{.name = "max_pool",
                           .integers = kPoolIntegers,
                           .shape = &pool_shape,
                           .compute = &compute_pool<true>};
  return info;
}

const OpInfo& average_pool_op() {
  static const OpInfo info{.name = "average_pool",
                           .integers = kPoolIntegers,
                           .shape = &pool_shape,
                           .compute = &compute_pool<false>};
  return info;
}

}  // namespace foretune::graph
