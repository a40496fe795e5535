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

// Four rows by four columns, transposed in registers: element by element, packing would cost a
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

// A panel whose elements lie along the source's rows: row i of the source becomes column i of the
// panel. What the panel has beyond `count` is zero.
void transpose_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                     std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  const std::ptrdiff_t whole_count = count / 4 * 4;
  const std::ptrdiff_t whole_k = k / 4 * 4;
  for (std::ptrdiff_t p = 0; p < whole_k; p += 4) {
    for (std::ptrdiff_t i = 0; i < whole_count; i += 4) {
      transpose_four(from + i * from_stride + p, from_stride, packed + p * width + i, width);
    }
    for (std::ptrdiff_t i = whole_count; i < count; ++i) {
      const float* row = from + i * from_stride + p;
      float* to = packed + p * width + i;
      to[0] = row[0];
      to[width] = row[1];
      to[2 * width] = row[2];
      to[3 * width] = row[3];
    }
  }
  for (std::ptrdiff_t p = whole_k; p < k; ++p) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      packed[p * width + i] = from[i * from_stride + p];
    }
  }
  if (count < width) {
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      std::fill_n(packed + p * width + count, width - count, 0.0F);
    }
  }
}

// With the width known, the compiler makes a row's copy a few vector moves instead of a call.
template <std::size_t kWidth>
void copy_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t k, float* packed) {
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::memcpy(packed, from, kWidth * sizeof(float));
    packed += kWidth;
    from += from_stride;
  }
}

// A panel whose rows lie in the source as they are, `count` elements of them; zeros behind.
void copy_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  if (count == width) {
    switch (width) {
      case 8:
        return copy_panel<8>(from, from_stride, k, packed);
      case 12:
        return copy_panel<12>(from, from_stride, k, packed);
      case 14:
        return copy_panel<14>(from, from_stride, k, packed);
      case 16:
        return copy_panel<16>(from, from_stride, k, packed);
      case 24:
        return copy_panel<24>(from, from_stride, k, packed);
      case 32:
        return copy_panel<32>(from, from_stride, k, packed);
      case 48:
        return copy_panel<48>(from, from_stride, k, packed);
      case 64:
        return copy_panel<64>(from, from_stride, k, packed);
      default:
        break;
    }
  }
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::copy_n(from + p * from_stride, count, packed);
    std::fill_n(packed + count, width - count, 0.0F);
    packed += width;
  }
}

}  // namespace

void pack_a_panels(const PackingSource& a, std::ptrdiff_t rows, std::ptrdiff_t k,
                   std::ptrdiff_t panel_rows, float* packed) {
  for (std::ptrdiff_t i = 0; i < rows; i += panel_rows) {
    const std::ptrdiff_t here = std::min(panel_rows, rows - i);
    if (a.by_columns) {
      copy_panel(a.values + i, a.stride, here, k, here, packed);
    } else {
      transpose_panel(a.values + i * a.stride, a.stride, here, k, here, packed);
    }
    packed += here * k;
  }
}

void pack_b_panels(const PackingSource& b, std::ptrdiff_t k, std::ptrdiff_t columns,
                   std::ptrdiff_t panel_columns, std::ptrdiff_t lanes, float* packed) {
  for (std::ptrdiff_t j = 0; j < columns; j += panel_columns) {
    const std::ptrdiff_t here = std::min(panel_columns, columns - j);
    const std::ptrdiff_t width = (here + lanes - 1) / lanes * lanes;
    if (b.by_columns) {
      transpose_panel(b.values + j * b.stride, b.stride, here, k, width, packed);
    } else {
      copy_panel(b.values + j, b.stride, here, k, width, packed);
    }
    packed += width * k;
  }
}

}  // namespace foretune
