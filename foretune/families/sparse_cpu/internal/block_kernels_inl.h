// The loops of sparse_kernels.h over matrices in blocks (BCSR), and of products with a matrix over
// slices (SELL), for the vectors that sparse_kernels_inl.h describes. Internal to the family.
//
// The rows of a slice have one length, and those of neighbouring slices mostly the same, so that
// the end of the loop over a row is foreseen by the CPU. That is what short rows gain from it.
//
// A row of blocks keeps its sums in registers: `height` rows, and of a product with a matrix some
// vectors of columns. Each row of B that a block names is loaded once for all of its rows.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/families/sparse_cpu/internal/sparse_kernels_inl.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

template <class V, int kHeight, int kVectors, bool kTail>
void spmm_slices(const SliceRange<typename V::Value>& slices,
                 const DenseRange<typename V::Value>& dense) {
  const bool streams = may_stream<V>(dense);
  const typename V::Mask mask = V::mask(static_cast<int>(dense.width) - (kVectors - 1) * V::kLanes);
  for (std::size_t slice = slices.first; slice < slices.last; ++slice) {
    typename V::Vector sums[bound(kHeight)][bound(kVectors)];
    for (int h = 0; h < kHeight; ++h) {
      for (int v = 0; v < kVectors; ++v) {
        sums[h][v] = V::zero();
      }
    }
    for (std::int64_t at = slices.starts[slice]; at < slices.starts[slice + 1]; at += kHeight) {
      for (int h = 0; h < kHeight; ++h) {
        add_row<V, kVectors, kTail>(slices.values[at + h],
                                    dense.b + slices.column_of[at + h] * dense.ldb, mask, sums[h]);
      }
    }
    for (int h = 0; h < kHeight; ++h) {
      const std::ptrdiff_t row = slices.row_of[slice * bound(kHeight) + bound(h)];
      if (row >= 0) {
        store_row<V, kVectors, kTail>(dense.c + row * dense.ldc, added_row(dense, row), mask,
                                      sums[h], streams);
      }
    }
  }
}

template <class V, int kHeight, int kVectors>
void slice_spmm_kernel(const SliceRange<typename V::Value>& slices,
                       const DenseRange<typename V::Value>& dense) {
  if (dense.width == kVectors * V::kLanes) {
    spmm_slices<V, kHeight, kVectors, false>(slices, dense);
  } else {
    spmm_slices<V, kHeight, kVectors, true>(slices, dense);
  }
}

template <class V, int kHeight, int kVectors>
SliceSpmmKernel<typename V::Value> choose_slice_spmm_of(int vectors) {
  if constexpr (kVectors > kMaxVectors || kHeight * kVectors > V::kSums) {
    return nullptr;
  } else {
    return vectors == kVectors ? &slice_spmm_kernel<V, kHeight, kVectors>
                               : choose_slice_spmm_of<V, kHeight, kVectors + 1>(vectors);
  }
}

template <class V>
SliceSpmmKernel<typename V::Value> choose_slice_spmm(int height, int vectors) {
  switch (height) {
    case 1:
      return choose_slice_spmm_of<V, 1, 1>(vectors);
    case 2:
      return choose_slice_spmm_of<V, 2, 1>(vectors);
    case 4:
      return choose_slice_spmm_of<V, 4, 1>(vectors);
    default:
      return nullptr;
  }
}

// Adds one column of a block: kHeight values, `step` apart, times a row of B.
template <class V, int kHeight, int kVectors, bool kTail>
[[gnu::always_inline]] inline void add_block_column(
    const typename V::Value* values, std::ptrdiff_t step, const typename V::Value* b,
    typename V::Mask mask, typename V::Vector (&sums)[bound(kHeight)][bound(kVectors)]) {
  typename V::Vector line[bound(kVectors)];
  for (int v = 0; v < kVectors; ++v) {
    line[v] =
        kTail && v == kVectors - 1 ? V::load(b + v * V::kLanes, mask) : V::load(b + v * V::kLanes);
  }
  for (int h = 0; h < kHeight; ++h) {
    const typename V::Vector a = V::broadcast(values[h * step]);
    for (int v = 0; v < kVectors; ++v) {
      sums[h][v] = V::fma(a, line[v], sums[h][v]);
    }
  }
}

// kThin: blocks one column wide.
template <class V, int kHeight, int kVectors, bool kTail, bool kThin>
void spmm_blocks(const BlockRange<typename V::Value>& blocks,
                 const DenseRange<typename V::Value>& dense) {
  const bool streams = may_stream<V>(dense);
  const typename V::Mask mask = V::mask(static_cast<int>(dense.width) - (kVectors - 1) * V::kLanes);
  const std::ptrdiff_t width = kThin ? 1 : blocks.width;
  for (std::size_t item = blocks.first; item < blocks.last; ++item) {
    typename V::Vector sums[bound(kHeight)][bound(kVectors)];
    for (int h = 0; h < kHeight; ++h) {
      for (int v = 0; v < kVectors; ++v) {
        sums[h][v] = V::zero();
      }
    }
    for (std::int64_t i = blocks.starts[item]; i < blocks.starts[item + 1]; ++i) {
      const typename V::Value* const values = blocks.values + i * kHeight * width;
      const std::ptrdiff_t column = blocks.column_of[i] * width;
      const typename V::Value* const b = dense.b + column * dense.ldb;
      if constexpr (kThin) {
        add_block_column<V, kHeight, kVectors, kTail>(values, 1, b, mask, sums);
      } else {
        const std::ptrdiff_t count = least(width, blocks.columns - column);
        for (std::ptrdiff_t j = 0; j < count; ++j) {
          add_block_column<V, kHeight, kVectors, kTail>(values + j, width, b + j * dense.ldb, mask,
                                                        sums);
        }
      }
    }
    const auto row = static_cast<std::ptrdiff_t>(item) * kHeight;
    const std::int64_t height = least(kHeight, blocks.rows - row);
    for (int h = 0; h < kHeight; ++h) {
      if (h < height) {
        store_row<V, kVectors, kTail>(dense.c + (row + h) * dense.ldc, added_row(dense, row + h),
                                      mask, sums[h], streams);
      }
    }
  }
}

template <class V, int kHeight, int kVectors>
void block_spmm_kernel(const BlockRange<typename V::Value>& blocks,
                       const DenseRange<typename V::Value>& dense) {
  const bool is_whole = dense.width == kVectors * V::kLanes;
  if (blocks.width == 1) {
    is_whole ? spmm_blocks<V, kHeight, kVectors, false, true>(blocks, dense)
             : spmm_blocks<V, kHeight, kVectors, true, true>(blocks, dense);
  } else {
    is_whole ? spmm_blocks<V, kHeight, kVectors, false, false>(blocks, dense)
             : spmm_blocks<V, kHeight, kVectors, true, false>(blocks, dense);
  }
}

template <class V, int kHeight, int kVectors>
BlockSpmmKernel<typename V::Value> choose_block_spmm_of(int vectors) {
  if constexpr (kVectors > kMaxVectors || kHeight * kVectors + kVectors + 1 > V::kBlockRegisters) {
    return nullptr;
  } else {
    return vectors == kVectors ? &block_spmm_kernel<V, kHeight, kVectors>
                               : choose_block_spmm_of<V, kHeight, kVectors + 1>(vectors);
  }
}

template <class V>
BlockSpmmKernel<typename V::Value> choose_block_spmm(int height, int vectors) {
  switch (height) {
    case 2:
      return choose_block_spmm_of<V, 2, 1>(vectors);
    case 3:
      return choose_block_spmm_of<V, 3, 1>(vectors);
    case 4:
      return choose_block_spmm_of<V, 4, 1>(vectors);
    case 6:
      return choose_block_spmm_of<V, 6, 1>(vectors);
    case 8:
      return choose_block_spmm_of<V, 8, 1>(vectors);
    default:
      return nullptr;
  }
}

enum class BlockKind : std::uint8_t { kBlocks, kDiagonals };

// The factors of a diagonal whose first element is in column `first`: x from there on, as far as it
// exists.
template <class V, int kVectors>
[[gnu::always_inline]] inline void load_diagonal(const typename V::Value* x, std::ptrdiff_t first,
                                                 std::int64_t columns,
                                                 typename V::Vector* factors) {
  constexpr int kHeight = kVectors * V::kLanes;
  if (first >= 0 && first + kHeight <= columns) {
    for (int v = 0; v < kVectors; ++v) {
      factors[v] = V::load(x + first + v * V::kLanes);
    }
    return;
  }
  typename V::Value line[bound(kHeight)] = {};
  for (int h = 0; h < kHeight; ++h) {
    if (first + h >= 0 && first + h < columns) {
      line[h] = x[first + h];
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    factors[v] = V::load(line + v * V::kLanes);
  }
}

// Blocks of kVectors vectors of rows and one column, or diagonals of as many rows.
template <class V, BlockKind kKind, int kVectors, int kUnroll>
void spmv_blocks(const BlockRange<typename V::Value>& blocks,
                 const VectorRange<typename V::Value>& vectors) {
  constexpr int kHeight = kVectors * V::kLanes;
  const typename V::Value* const x = vectors.x;
  for (std::size_t item = blocks.first; item < blocks.last; ++item) {
    typename V::Vector sums[bound(kUnroll)][bound(kVectors)];
    for (int u = 0; u < kUnroll; ++u) {
      for (int v = 0; v < kVectors; ++v) {
        sums[u][v] = V::zero();
      }
    }
    const auto add = [&](std::int64_t i, typename V::Vector* of) {
      typename V::Vector factors[bound(kVectors)];
      if constexpr (kKind == BlockKind::kBlocks) {
        factors[0] = V::broadcast(x[blocks.column_of[i]]);
        for (int v = 1; v < kVectors; ++v) {
          factors[v] = factors[0];
        }
      } else {
        load_diagonal<V, kVectors>(x, blocks.column_of[i] - (kHeight - 1), blocks.columns, factors);
      }
      for (int v = 0; v < kVectors; ++v) {
        of[v] = V::fma(V::load(blocks.values + i * kHeight + v * V::kLanes), factors[v], of[v]);
      }
    };
    std::int64_t i = blocks.starts[item];
    const std::int64_t end = blocks.starts[item + 1];
    for (; i + kUnroll <= end; i += kUnroll) {
      for (int u = 0; u < kUnroll; ++u) {
        add(i + u, sums[u]);
      }
    }
    for (; i < end; ++i) {
      add(i, sums[0]);
    }
    for (int u = 1; u < kUnroll; ++u) {
      for (int v = 0; v < kVectors; ++v) {
        sums[0][v] = V::add(sums[0][v], sums[u][v]);
      }
    }
    const auto row = static_cast<std::ptrdiff_t>(item) * kHeight;
    for (int v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t at = row + v * V::kLanes;
      const std::int64_t rest = blocks.rows - at;
      if (rest >= V::kLanes) {
        V::store(vectors.y + at, vectors.added == nullptr
                                     ? sums[0][v]
                                     : V::add(sums[0][v], V::load(vectors.added + at)));
      } else if (rest > 0) {
        const typename V::Mask mask = V::mask(static_cast<int>(rest));
        V::store(vectors.y + at,
                 vectors.added == nullptr ? sums[0][v]
                                          : V::add(sums[0][v], V::load(vectors.added + at, mask)),
                 mask);
      }
    }
  }
}

template <class V, BlockKind kKind, int kVectors>
BlockSpmvKernel<typename V::Value> choose_block_spmv_of(int unroll) {
  switch (unroll) {
    case 1:
      return &spmv_blocks<V, kKind, kVectors, 1>;
    case 2:
      return &spmv_blocks<V, kKind, kVectors, 2>;
    case 4:
      if constexpr (kVectors <= 2) {
        return &spmv_blocks<V, kKind, kVectors, 4>;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

template <class V, BlockKind kKind>
BlockSpmvKernel<typename V::Value> choose_block_spmv(int height, int unroll) {
  switch (height % V::kLanes == 0 ? height / V::kLanes : 0) {
    case 1:
      return choose_block_spmv_of<V, kKind, 1>(unroll);
    case 2:
      return choose_block_spmv_of<V, kKind, 2>(unroll);
    case 4:
      return choose_block_spmv_of<V, kKind, 4>(unroll);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace foretune::sparse_cpu
