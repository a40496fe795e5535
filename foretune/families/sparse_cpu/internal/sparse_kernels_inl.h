// The loops of sparse_kernels.h over the vectors of an instruction set. A file that includes this
// defines the vectors in its unnamed namespace, so that no function compiled for one instruction
// set stands in for another's. Internal to the family.
//
// A vector V has: Value, Vector, Mask, kLanes, kSums (vectors of sums that the registers hold),
// mask(count) of the first lanes, zero(), broadcast(value), load(from), load(from, mask),
// store(to, vector), store(to, vector, mask), fma(a, b, sum), add(a, b), gather(base, indices),
// gather(base, indices, mask), sum(vector). Masked-out lanes are not accessed.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

// An inline function of the standard library that is compiled here must not be the one that the
// linker keeps for the rest of the program.
[[gnu::always_inline]] inline std::int64_t least(std::int64_t a, std::int64_t b) {
  return b < a ? b : a;
}

constexpr std::size_t bound(int count) { return static_cast<std::size_t>(count); }

// Adds `value` times a row of B to the sums.
template <class V, int kVectors, bool kTail>
[[gnu::always_inline]] inline void add_row(typename V::Value value, const typename V::Value* b,
                                           typename V::Mask mask, typename V::Vector* sums) {
  const typename V::Vector a = V::broadcast(value);
  for (int v = 0; v < kVectors; ++v) {
    if (kTail && v == kVectors - 1) {
      sums[v] = V::fma(a, V::load(b + v * V::kLanes, mask), sums[v]);
    } else {
      sums[v] = V::fma(a, V::load(b + v * V::kLanes), sums[v]);
    }
  }
}

template <class V, int kVectors, bool kTail>
[[gnu::always_inline]] inline void store_row(typename V::Value* c, typename V::Mask mask,
                                             const typename V::Vector* sums) {
  for (int v = 0; v < kVectors; ++v) {
    if (kTail && v == kVectors - 1) {
      V::store(c + v * V::kLanes, sums[v], mask);
    } else {
      V::store(c + v * V::kLanes, sums[v]);
    }
  }
}

// One row with kUnroll sets of sums.
template <class V, int kVectors, int kUnroll, bool kTail>
[[gnu::always_inline]] inline void spmm_row(const RowRange<typename V::Value>& rows,
                                            std::size_t row, const typename V::Value* b,
                                            std::ptrdiff_t ldb, typename V::Value* c,
                                            typename V::Mask mask) {
  typename V::Vector sums[bound(kUnroll)][bound(kVectors)];
  for (int u = 0; u < kUnroll; ++u) {
    for (int v = 0; v < kVectors; ++v) {
      sums[u][v] = V::zero();
    }
  }
  std::int64_t i = rows.starts[row];
  const std::int64_t end = rows.starts[row + 1];
  if constexpr (kUnroll > 1) {
    for (; i + kUnroll <= end; i += kUnroll) {
      for (int u = 0; u < kUnroll; ++u) {
        add_row<V, kVectors, kTail>(rows.values[i + u], b + rows.column_of[i + u] * ldb, mask,
                                    sums[u]);
      }
    }
  }
  for (; i < end; ++i) {
    add_row<V, kVectors, kTail>(rows.values[i], b + rows.column_of[i] * ldb, mask, sums[0]);
  }
  for (int u = 1; u < kUnroll; ++u) {
    for (int v = 0; v < kVectors; ++v) {
      sums[0][v] = V::add(sums[0][v], sums[u][v]);
    }
  }
  store_row<V, kVectors, kTail>(c, mask, sums[0]);
}

// kGroup rows side by side as far as the shortest goes, then each to its end.
template <class V, int kVectors, int kGroup, bool kTail>
[[gnu::always_inline]] inline void spmm_group(const RowRange<typename V::Value>& rows,
                                              std::size_t row, const typename V::Value* b,
                                              std::ptrdiff_t ldb, typename V::Value* c,
                                              std::ptrdiff_t ldc, typename V::Mask mask) {
  typename V::Vector sums[bound(kGroup)][bound(kVectors)];
  std::int64_t common = rows.starts[row + 1] - rows.starts[row];
  for (int g = 0; g < kGroup; ++g) {
    const std::size_t other = row + static_cast<std::size_t>(g);
    common = least(common, rows.starts[other + 1] - rows.starts[other]);
    for (int v = 0; v < kVectors; ++v) {
      sums[g][v] = V::zero();
    }
  }
  const std::int64_t* const starts = rows.starts + row;
  for (std::int64_t i = 0; i < common; ++i) {
    for (int g = 0; g < kGroup; ++g) {
      const std::int64_t at = starts[g] + i;
      add_row<V, kVectors, kTail>(rows.values[at], b + rows.column_of[at] * ldb, mask, sums[g]);
    }
  }
  for (int g = 0; g < kGroup; ++g) {
    for (std::int64_t at = starts[g] + common; at < starts[g + 1]; ++at) {
      add_row<V, kVectors, kTail>(rows.values[at], b + rows.column_of[at] * ldb, mask, sums[g]);
    }
    store_row<V, kVectors, kTail>(c + g * ldc, mask, sums[g]);
  }
}

template <class V, int kVectors, int kUnroll, int kGroup, bool kTail>
void spmm_rows(const RowRange<typename V::Value>& rows, const typename V::Value* b,
               std::ptrdiff_t ldb, typename V::Value* c, std::ptrdiff_t ldc, std::ptrdiff_t width) {
  const typename V::Mask mask = V::mask(static_cast<int>(width) - (kVectors - 1) * V::kLanes);
  std::size_t row = rows.first;
  if constexpr (kGroup > 1) {
    for (; row + kGroup <= rows.last; row += kGroup) {
      spmm_group<V, kVectors, kGroup, kTail>(rows, row, b, ldb,
                                             c + static_cast<std::ptrdiff_t>(row) * ldc, ldc, mask);
    }
  }
  for (; row < rows.last; ++row) {
    spmm_row<V, kVectors, kUnroll, kTail>(rows, row, b, ldb,
                                          c + static_cast<std::ptrdiff_t>(row) * ldc, mask);
  }
}

template <class V, int kVectors, int kUnroll, int kGroup>
void spmm_kernel(const RowRange<typename V::Value>& rows, const typename V::Value* b,
                 std::ptrdiff_t ldb, typename V::Value* c, std::ptrdiff_t ldc,
                 std::ptrdiff_t width) {
  if (width == kVectors * V::kLanes) {
    spmm_rows<V, kVectors, kUnroll, kGroup, false>(rows, b, ldb, c, ldc, width);
  } else {
    spmm_rows<V, kVectors, kUnroll, kGroup, true>(rows, b, ldb, c, ldc, width);
  }
}

template <class V, int kVectors>
SpmmKernel<typename V::Value> choose_spmm_of(int unroll, int group) {
  if (unroll == 1 && group == 1) {
    return &spmm_kernel<V, kVectors, 1, 1>;
  }
  if constexpr (2 * kVectors <= V::kSums) {
    if (unroll == 2 && group == 1) {
      return &spmm_kernel<V, kVectors, 2, 1>;
    }
    if (unroll == 1 && group == 2) {
      return &spmm_kernel<V, kVectors, 1, 2>;
    }
  }
  if constexpr (4 * kVectors <= V::kSums) {
    if (unroll == 4 && group == 1) {
      return &spmm_kernel<V, kVectors, 4, 1>;
    }
    if (unroll == 1 && group == 4) {
      return &spmm_kernel<V, kVectors, 1, 4>;
    }
  }
  return nullptr;
}

template <class V>
SpmmKernel<typename V::Value> choose_spmm(int vectors, int unroll, int group) {
  switch (vectors) {
    case 1:
      return choose_spmm_of<V, 1>(unroll, group);
    case 2:
      return choose_spmm_of<V, 2>(unroll, group);
    case 3:
      return choose_spmm_of<V, 3>(unroll, group);
    case 4:
      return choose_spmm_of<V, 4>(unroll, group);
    case 5:
      return choose_spmm_of<V, 5>(unroll, group);
    case 6:
      return choose_spmm_of<V, 6>(unroll, group);
    case 7:
      return choose_spmm_of<V, 7>(unroll, group);
    case 8:
      return choose_spmm_of<V, 8>(unroll, group);
    default:
      return nullptr;
  }
}

template <class V, int kUnroll>
void spmv_along_entries(const RowRange<typename V::Value>& rows, const typename V::Value* x,
                        typename V::Value* y) {
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    typename V::Vector sums[bound(kUnroll)];
    for (int u = 0; u < kUnroll; ++u) {
      sums[u] = V::zero();
    }
    std::int64_t i = rows.starts[row];
    const std::int64_t end = rows.starts[row + 1];
    for (; i + kUnroll * V::kLanes <= end; i += kUnroll * V::kLanes) {
      for (int u = 0; u < kUnroll; ++u) {
        const std::int64_t at = i + u * V::kLanes;
        sums[u] = V::fma(V::load(rows.values + at), V::gather(x, rows.column_of + at), sums[u]);
      }
    }
    for (; i < end; i += V::kLanes) {
      const typename V::Mask mask = V::mask(static_cast<int>(least(end - i, V::kLanes)));
      sums[0] =
          V::fma(V::load(rows.values + i, mask), V::gather(x, rows.column_of + i, mask), sums[0]);
    }
    for (int u = 1; u < kUnroll; ++u) {
      sums[0] = V::add(sums[0], sums[u]);
    }
    y[row] = V::sum(sums[0]);
  }
}

template <class T, int kUnroll>
void spmv_scalar(const RowRange<T>& rows, const T* x, T* y) {
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    T sums[bound(kUnroll)] = {};
    std::int64_t i = rows.starts[row];
    const std::int64_t end = rows.starts[row + 1];
    for (; i + kUnroll <= end; i += kUnroll) {
      for (int u = 0; u < kUnroll; ++u) {
        sums[u] += rows.values[i + u] * x[rows.column_of[i + u]];
      }
    }
    for (; i < end; ++i) {
      sums[0] += rows.values[i] * x[rows.column_of[i]];
    }
    for (int u = 1; u < kUnroll; ++u) {
      sums[0] += sums[u];
    }
    y[row] = sums[0];
  }
}

template <class V>
SpmvKernel<typename V::Value> choose_spmv(bool along_entries, int unroll) {
  using T = typename V::Value;
  switch (unroll) {
    case 1:
      return along_entries ? &spmv_along_entries<V, 1> : &spmv_scalar<T, 1>;
    case 2:
      return along_entries ? &spmv_along_entries<V, 2> : &spmv_scalar<T, 2>;
    case 4:
      return along_entries ? &spmv_along_entries<V, 4> : &spmv_scalar<T, 4>;
    default:
      return nullptr;
  }
}

template <class V, int kUnroll>
void spmv_sell(const SliceRange<typename V::Value>& slices, const typename V::Value* x,
               typename V::Value* y) {
  using T = typename V::Value;
  for (std::size_t slice = slices.first; slice < slices.last; ++slice) {
    for (std::size_t lane = 0; lane < slices.height; lane += bound(kUnroll * V::kLanes)) {
      typename V::Vector sums[bound(kUnroll)];
      for (int u = 0; u < kUnroll; ++u) {
        sums[u] = V::zero();
      }
      for (std::int64_t at = slices.starts[slice] + static_cast<std::int64_t>(lane);
           at < slices.starts[slice + 1]; at += static_cast<std::int64_t>(slices.height)) {
        for (int u = 0; u < kUnroll; ++u) {
          sums[u] = V::fma(V::load(slices.values + at + u * V::kLanes),
                           V::gather(x, slices.column_of + at + u * V::kLanes), sums[u]);
        }
      }
      T results[bound(kUnroll * V::kLanes)];
      for (int u = 0; u < kUnroll; ++u) {
        V::store(results + u * V::kLanes, sums[u]);
      }
      const std::int32_t* const row_of = slices.row_of + slice * slices.height + lane;
      for (int i = 0; i < kUnroll * V::kLanes; ++i) {
        if (row_of[i] >= 0) {
          y[row_of[i]] = results[i];
        }
      }
    }
  }
}

template <class V>
SellKernel<typename V::Value> choose_sell(int unroll) {
  switch (unroll) {
    case 1:
      return &spmv_sell<V, 1>;
    case 2:
      return &spmv_sell<V, 2>;
    case 4:
      return &spmv_sell<V, 4>;
    default:
      return nullptr;
  }
}

// The dot products of a row of B with kEntries columns of C.
template <class V, int kEntries>
[[gnu::always_inline]] inline void sddmm_entries(const RowRange<typename V::Value>& rows,
                                                 std::int64_t i, const typename V::Value* b,
                                                 const typename V::Value* c, std::ptrdiff_t ldc,
                                                 std::ptrdiff_t n, typename V::Value* out) {
  typename V::Vector sums[bound(kEntries)];
  const typename V::Value* columns[bound(kEntries)];
  for (int e = 0; e < kEntries; ++e) {
    sums[e] = V::zero();
    columns[e] = c + rows.column_of[i + e] * ldc;
  }
  std::ptrdiff_t k = 0;
  for (; k + V::kLanes <= n; k += V::kLanes) {
    const typename V::Vector shared = V::load(b + k);
    for (int e = 0; e < kEntries; ++e) {
      sums[e] = V::fma(shared, V::load(columns[e] + k), sums[e]);
    }
  }
  if (k < n) {
    const typename V::Mask mask = V::mask(static_cast<int>(n - k));
    const typename V::Vector shared = V::load(b + k, mask);
    for (int e = 0; e < kEntries; ++e) {
      sums[e] = V::fma(shared, V::load(columns[e] + k, mask), sums[e]);
    }
  }
  for (int e = 0; e < kEntries; ++e) {
    out[i + e] = rows.values[i + e] * V::sum(sums[e]);
  }
}

template <class V, int kEntries>
void sddmm_kernel(const RowRange<typename V::Value>& rows, const typename V::Value* b,
                  std::ptrdiff_t ldb, const typename V::Value* c, std::ptrdiff_t ldc,
                  std::ptrdiff_t n, typename V::Value* out) {
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    const typename V::Value* const line = b + static_cast<std::ptrdiff_t>(row) * ldb;
    std::int64_t i = rows.starts[row];
    const std::int64_t end = rows.starts[row + 1];
    for (; i + kEntries <= end; i += kEntries) {
      sddmm_entries<V, kEntries>(rows, i, line, c, ldc, n, out);
    }
    for (; i < end; ++i) {
      sddmm_entries<V, 1>(rows, i, line, c, ldc, n, out);
    }
  }
}

template <class V>
SddmmKernel<typename V::Value> choose_sddmm(int entries) {
  switch (entries) {
    case 1:
      return &sddmm_kernel<V, 1>;
    case 2:
      return &sddmm_kernel<V, 2>;
    case 4:
      return &sddmm_kernel<V, 4>;
    case 8:
      return &sddmm_kernel<V, 8>;
    default:
      return nullptr;
  }
}

template <class V>
constexpr SparseKernels<typename V::Value> kernels_of() {
  return {.lanes = V::kLanes,
          .spmm = &choose_spmm<V>,
          .spmv = &choose_spmv<V>,
          .sell = &choose_sell<V>,
          .sddmm = &choose_sddmm<V>};
}

}  // namespace
}  // namespace foretune::sparse_cpu
