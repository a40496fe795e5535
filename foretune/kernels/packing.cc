#include "foretune/kernels/packing.h"

#include <algorithm>
#include <cstring>

namespace foretune {
namespace {

using Four = float __attribute__((vector_size(16)));

Four load_four(const float* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store_four(float* to, Four value) { std::memcpy(to, &value, sizeof value); }

// Four rows by four columns, transposed in registers: element by element, packing A would cost a
// cycle an element, which a 14-row kernel needs n > 500 to hide.
void transpose_four(const float* from, std::ptrdiff_t from_stride, float* to,
                    std::ptrdiff_t to_stride) {
  const Four row0 = load_four(from);
  const Four row1 = load_four(from + from_stride);
  const Four row2 = load_four(from + 2 * from_stride);
  const Four row3 = load_four(from + 3 * from_stride);
  const Four low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
  store_four(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
  store_four(to + to_stride, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
  store_four(to + 2 * to_stride, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
  store_four(to + 3 * to_stride, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

void pack_a_panel(const float* a, std::ptrdiff_t a_stride, std::ptrdiff_t rows, std::ptrdiff_t k,
                  float* packed) {
  const std::ptrdiff_t whole_rows = rows / 4 * 4;
  const std::ptrdiff_t whole_k = k / 4 * 4;
  for (std::ptrdiff_t p = 0; p < whole_k; p += 4) {
    for (std::ptrdiff_t i = 0; i < whole_rows; i += 4) {
      transpose_four(a + i * a_stride + p, a_stride, packed + p * rows + i, rows);
    }
    for (std::ptrdiff_t i = whole_rows; i < rows; ++i) {
      const float* from = a + i * a_stride + p;
      float* to = packed + p * rows + i;
      to[0] = from[0];
      to[rows] = from[1];
      to[2 * rows] = from[2];
      to[3 * rows] = from[3];
    }
  }
  for (std::ptrdiff_t p = whole_k; p < k; ++p) {
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      packed[p * rows + i] = a[i * a_stride + p];
    }
  }
}

// With the width known, the compiler makes a row's copy a few vector moves instead of a call.
template <std::size_t kWidth>
void pack_b_panel(const float* b, std::ptrdiff_t b_stride, std::ptrdiff_t k, float* packed) {
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::memcpy(packed, b, kWidth * sizeof(float));
    packed += kWidth;
    b += b_stride;
  }
}

void pack_b_panel(const float* b, std::ptrdiff_t b_stride, std::ptrdiff_t k, std::ptrdiff_t columns,
                  std::ptrdiff_t width, float* packed) {
  if (columns == width) {
    switch (width) {
      case 8:
        return pack_b_panel<8>(b, b_stride, k, packed);
      case 16:
        return pack_b_panel<16>(b, b_stride, k, packed);
      case 24:
        return pack_b_panel<24>(b, b_stride, k, packed);
      case 32:
        return pack_b_panel<32>(b, b_stride, k, packed);
      case 48:
        return pack_b_panel<48>(b, b_stride, k, packed);
      case 64:
        return pack_b_panel<64>(b, b_stride, k, packed);
      default:
        break;
    }
  }
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::copy_n(b + p * b_stride, columns, packed);
    std::fill_n(packed + columns, width - columns, 0.0F);
    packed += width;
  }
}

}  // namespace

void pack_a_panels(const float* a, std::ptrdiff_t a_stride, std::ptrdiff_t rows, std::ptrdiff_t k,
                   std::ptrdiff_t panel_rows, float* packed) {
  for (std::ptrdiff_t i = 0; i < rows; i += panel_rows) {
    const std::ptrdiff_t here = std::min(panel_rows, rows - i);
    pack_a_panel(a + i * a_stride, a_stride, here, k, packed);
    packed += here * k;
  }
}

void pack_b_panels(const float* b, std::ptrdiff_t b_stride, std::ptrdiff_t k,
                   std::ptrdiff_t columns, std::ptrdiff_t panel_columns, std::ptrdiff_t lanes,
                   float* packed) {
  for (std::ptrdiff_t j = 0; j < columns; j += panel_columns) {
    const std::ptrdiff_t here = std::min(panel_columns, columns - j);
    const std::ptrdiff_t width = (here + lanes - 1) / lanes * lanes;
    pack_b_panel(b + j, b_stride, k, here, width, packed);
    packed += width * k;
  }
}

}  // namespace foretune
