// Packing: copies of a block of A or B in the order in which a micro-kernel reads them, so that it
// walks through memory once, without strides that collide in the caches.
// Thread safety: free functions. Cost: memory-bound; no allocation.
#pragma once

#include <cstddef>

namespace foretune {

// A block of a matrix: row-major, element (i, j) at values[i * stride + j], or by columns, at
// values[j * stride + i].
struct PackingSource {
  const float* values = nullptr;
  std::ptrdiff_t stride = 0;
  bool by_columns = false;
};

// A block of `rows` x `k` of A as panels of `panel_rows` rows; element (i, p) of a panel with r
// rows lies at p * r + i. The last panel has the rows that remain, and no padding: the whole takes
// exactly rows * k floats.
void pack_a_panels(const PackingSource& a, std::ptrdiff_t rows, std::ptrdiff_t k,
                   std::ptrdiff_t panel_rows, float* packed);

// A block of `k` x `columns` of B as panels of `panel_columns` (a multiple of `lanes`); element
// (p, j) of a panel lies at p * width + j. The width of the last panel is rounded up to whole
// vectors of `lanes` floats and filled with zeros.
void pack_b_panels(const PackingSource& b, std::ptrdiff_t k, std::ptrdiff_t columns,
                   std::ptrdiff_t panel_columns, std::ptrdiff_t lanes, float* packed);

// Floats that pack_b_panels writes.
constexpr std::ptrdiff_t packed_b_size(std::ptrdiff_t k, std::ptrdiff_t columns,
                                       std::ptrdiff_t lanes) {
  return k * ((columns + lanes - 1) / lanes * lanes);
}

}  // namespace foretune
