// The loops of sparse_kernels.h over the vectors of an instruction set. A file that includes this
// defines the vectors in its unnamed namespace, so that no function compiled for one instruction
// set stands in for another's. Internal to the family.
//
// A vector V has: Value, Vector, Mask, kLanes, kSums (vectors of sums that the registers hold),
// mask(count) of the first lanes, zero(), broadcast(value), load(from), load(from, mask),
// store(to, vector), store(to, vector, mask), stream(to, vector) past the caches to aligned places,
// fence() after such, fma(a, b, sum), add(a, b), gather(base, indices), gather(base, indices,
// mask), gather_by_loads(base, indices), sum(vector), and sum4(vectors, to), which stores the sums
// of four. kBlockRegisters are those that a block of rows and columns may take. Masked-out lanes
// are not accessed. Thread safety: free functions.
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

// Stores the sums of a row at c, and adds what stands at `added` unless it is nullptr.
template <class V, int kVectors, bool kTail>
[[gnu::always_inline]] inline void store_row(typename V::Value* c, const typename V::Value* added,
                                             typename V::Mask mask, typename V::Vector* sums,
                                             bool streams) {
  for (int v = 0; added != nullptr && v < kVectors; ++v) {
    const typename V::Value* const from = added + v * V::kLanes;
    sums[v] = V::add(sums[v], kTail && v == kVectors - 1 ? V::load(from, mask) : V::load(from));
  }
  for (int v = 0; v < kVectors; ++v) {
    if (kTail && v == kVectors - 1) {
      V::store(c + v * V::kLanes, sums[v], mask);
    } else if (streams) {
      V::stream(c + v * V::kLanes, sums[v]);
    } else {
      V::store(c + v * V::kLanes, sums[v]);
    }
  }
}

// Returns the row of what is added; nullptr where nothing is.
template <class T>
[[gnu::always_inline]] inline const T* added_row(const DenseRange<T>& dense, std::ptrdiff_t row) {
  return dense.added == nullptr ? nullptr : dense.added + row * dense.ldc;
}

// Returns true when all vectors of c lie where they may be written past the caches.
template <class V>
[[gnu::always_inline]] inline bool may_stream(const DenseRange<typename V::Value>& dense) {
  constexpr std::size_t kBytes = bound(V::kLanes) * sizeof(typename V::Value);
  return dense.streams && reinterpret_cast<std::uintptr_t>(dense.c) % kBytes == 0 &&
         static_cast<std::size_t>(dense.ldc) * sizeof(typename V::Value) % kBytes == 0;
}

// One row with kUnroll sets of sums.
template <class V, int kVectors, int kUnroll, bool kTail>
[[gnu::always_inline]] inline void spmm_row(const RowRange<typename V::Value>& rows,
                                            std::size_t row,
                                            const DenseRange<typename V::Value>& dense,
                                            typename V::Mask mask, bool streams) {
  const typename V::Value* const b = dense.b;
  const std::ptrdiff_t ldb = dense.ldb;
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
  const auto line = static_cast<std::ptrdiff_t>(row);
  store_row<V, kVectors, kTail>(dense.c + line * dense.ldc, added_row(dense, line), mask, sums[0],
                                streams);
}

// kGroup rows side by side as far as the shortest goes, then each to its end.
template <class V, int kVectors, int kGroup, bool kTail>
[[gnu::always_inline]] inline void spmm_group(const RowRange<typename V::Value>& rows,
                                              std::size_t row,
                                              const DenseRange<typename V::Value>& dense,
                                              typename V::Mask mask, bool streams) {
  const typename V::Value* const b = dense.b;
  const std::ptrdiff_t ldb = dense.ldb;
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
    const auto line = static_cast<std::ptrdiff_t>(row) + g;
    store_row<V, kVectors, kTail>(dense.c + line * dense.ldc, added_row(dense, line), mask, sums[g],
                                  streams);
  }
}

template <class V, int kVectors, int kUnroll, int kGroup, bool kTail>
void spmm_rows(const RowRange<typename V::Value>& rows,
               const DenseRange<typename V::Value>& dense) {
  const bool streams = may_stream<V>(dense);
  const typename V::Mask mask = V::mask(static_cast<int>(dense.width) - (kVectors - 1) * V::kLanes);
  std::size_t row = rows.first;
  if constexpr (kGroup > 1) {
    for (; row + kGroup <= rows.last; row += kGroup) {
      spmm_group<V, kVectors, kGroup, kTail>(rows, row, dense, mask, streams);
    }
  }
  for (; row < rows.last; ++row) {
    spmm_row<V, kVectors, kUnroll, kTail>(rows, row, dense, mask, streams);
  }
}

template <class V, int kVectors, int kUnroll, int kGroup>
void spmm_kernel(const RowRange<typename V::Value>& rows,
                 const DenseRange<typename V::Value>& dense) {
  if (dense.width == kVectors * V::kLanes) {
    spmm_rows<V, kVectors, kUnroll, kGroup, false>(rows, dense);
  } else {
    spmm_rows<V, kVectors, kUnroll, kGroup, true>(rows, dense);
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

template <class V, bool kByLoads>
[[gnu::always_inline]] inline typename V::Vector gathered(const typename V::Value* x,
                                                          const std::int32_t* indices) {
  if constexpr (kByLoads) {
    return V::gather_by_loads(x, indices);
  } else {
    return V::gather(x, indices);
  }
}

template <class T>
[[gnu::always_inline]] inline void store_sum(const VectorRange<T>& vectors, std::size_t row,
                                             T sum) {
  vectors.y[row] = vectors.added == nullptr ? sum : sum + vectors.added[row];
}

template <class V, int kUnroll, bool kByLoads>
void spmv_along_entries(const RowRange<typename V::Value>& rows,
                        const VectorRange<typename V::Value>& vectors) {
  const typename V::Value* const x = vectors.x;
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
        sums[u] = V::fma(V::load(rows.values + at), gathered<V, kByLoads>(x, rows.column_of + at),
                         sums[u]);
      }
    }
    typename V::Value rest = 0;
    if constexpr (kByLoads) {
      for (; i + V::kLanes <= end; i += V::kLanes) {
        sums[0] =
            V::fma(V::load(rows.values + i), V::gather_by_loads(x, rows.column_of + i), sums[0]);
      }
      for (; i < end; ++i) {
        rest += rows.values[i] * x[rows.column_of[i]];
      }
    } else {
      for (; i < end; i += V::kLanes) {
        const typename V::Mask mask = V::mask(static_cast<int>(least(end - i, V::kLanes)));
        sums[0] =
            V::fma(V::load(rows.values + i, mask), V::gather(x, rows.column_of + i, mask), sums[0]);
      }
    }
    for (int u = 1; u < kUnroll; ++u) {
      sums[0] = V::add(sums[0], sums[u]);
    }
    store_sum(vectors, row, V::sum(sums[0]) + rest);
  }
}

template <class T, int kUnroll>
void spmv_scalar(const RowRange<T>& rows, const VectorRange<T>& vectors) {
  const T* const x = vectors.x;
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
    store_sum(vectors, row, sums[0]);
  }
}

template <class V, int kUnroll>
SpmvKernel<typename V::Value> choose_spmv_of(bool along_entries, bool by_loads) {
  if (!along_entries) {
    return &spmv_scalar<typename V::Value, kUnroll>;
  }
  return by_loads ? &spmv_along_entries<V, kUnroll, true> : &spmv_along_entries<V, kUnroll, false>;
}

template <class V>
SpmvKernel<typename V::Value> choose_spmv(bool along_entries, int unroll, bool by_loads) {
  switch (unroll) {
    case 1:
      return choose_spmv_of<V, 1>(along_entries, by_loads);
    case 2:
      return choose_spmv_of<V, 2>(along_entries, by_loads);
    case 4:
      return choose_spmv_of<V, 4>(along_entries, by_loads);
    default:
      return nullptr;
  }
}

// Stores the sums of these rows; a place without a row has a negative one.
template <class V>
[[gnu::always_inline]] inline void store_rows(typename V::Vector sums, const std::int32_t* row_of,
                                              const VectorRange<typename V::Value>& vectors) {
  if (V::is_run(row_of)) {
    if (vectors.added != nullptr) {
      sums = V::add(sums, V::load(vectors.added + row_of[0]));
    }
    V::store(vectors.y + row_of[0], sums);
    return;
  }
  typename V::Value results[bound(V::kLanes)];
  V::store(results, sums);
  for (int i = 0; i < V::kLanes; ++i) {
    if (row_of[i] >= 0) {
      store_sum(vectors, static_cast<std::size_t>(row_of[i]), results[i]);
    }
  }
}

template <class V, int kUnroll, bool kByLoads>
void spmv_sell(const SliceRange<typename V::Value>& slices,
               const VectorRange<typename V::Value>& vectors) {
  const typename V::Value* const x = vectors.x;
  for (std::size_t slice = slices.first; slice < slices.last; ++slice) {
    for (std::size_t lane = 0; lane < slices.height; lane += bound(kUnroll * V::kLanes)) {
      typename V::Vector sums[bound(kUnroll)];
      for (int u = 0; u < kUnroll; ++u) {
        sums[u] = V::zero();
      }
      for (std::int64_t at = slices.starts[slice] + static_cast<std::int64_t>(lane);
           at < slices.starts[slice + 1]; at += static_cast<std::int64_t>(slices.height)) {
        for (int u = 0; u < kUnroll; ++u) {
          sums[u] =
              V::fma(V::load(slices.values + at + u * V::kLanes),
                     gathered<V, kByLoads>(x, slices.column_of + at + u * V::kLanes), sums[u]);
        }
      }
      const std::int32_t* const row_of = slices.row_of + slice * slices.height + lane;
      for (int u = 0; u < kUnroll; ++u) {
        store_rows<V>(sums[u], row_of + u * V::kLanes, vectors);
      }
    }
  }
}

template <class V>
SellKernel<typename V::Value> choose_sell(int unroll, bool by_loads) {
  switch (unroll) {
    case 1:
      return by_loads ? &spmv_sell<V, 1, true> : &spmv_sell<V, 1, false>;
    case 2:
      return by_loads ? &spmv_sell<V, 2, true> : &spmv_sell<V, 2, false>;
    case 4:
      return by_loads ? &spmv_sell<V, 4, true> : &spmv_sell<V, 4, false>;
    default:
      return nullptr;
  }
}

// The dot products of a row of B with kEntries columns of C, from non-zero i on, which it moves on.
template <class V, int kEntries>
[[gnu::always_inline]] inline void sddmm_entries(const RowRange<typename V::Value>& rows,
                                                 const SampledRange<typename V::Value>& dense,
                                                 const typename V::Value* b, std::int64_t& i) {
  typename V::Vector sums[bound(kEntries)];
  const typename V::Value* columns[bound(kEntries)];
  for (int e = 0; e < kEntries; ++e) {
    sums[e] = V::zero();
    columns[e] = dense.c + rows.column_of[i + e] * dense.stride;
  }
  std::ptrdiff_t k = 0;
  for (; k + V::kLanes <= dense.n; k += V::kLanes) {
    const typename V::Vector shared = V::load(b + k);
    for (int e = 0; e < kEntries; ++e) {
      sums[e] = V::fma(shared, V::load(columns[e] + k), sums[e]);
    }
  }
  if (k < dense.n) {
    const typename V::Mask mask = V::mask(static_cast<int>(dense.n - k));
    const typename V::Vector shared = V::load(b + k, mask);
    for (int e = 0; e < kEntries; ++e) {
      sums[e] = V::fma(shared, V::load(columns[e] + k, mask), sums[e]);
    }
  }
  typename V::Value products[bound(kEntries)];
  if constexpr (kEntries % 4 == 0) {
    for (int e = 0; e < kEntries; e += 4) {
      V::sum4(sums + e, products + e);
    }
  } else {
    for (int e = 0; e < kEntries; ++e) {
      products[e] = V::sum(sums[e]);
    }
  }
  for (int e = 0; e < kEntries; ++e) {
    dense.out[i + e] = rows.values[i + e] * products[e];
  }
  i += kEntries;
}

// The same of one column, with four sums, so that no addition waits for the one before it.
template <class V>
[[gnu::always_inline]] inline void sddmm_entry(const RowRange<typename V::Value>& rows,
                                               const SampledRange<typename V::Value>& dense,
                                               const typename V::Value* b, std::int64_t& i) {
  constexpr int kSums = 4;
  const typename V::Value* const column = dense.c + rows.column_of[i] * dense.stride;
  typename V::Vector sums[bound(kSums)] = {V::zero(), V::zero(), V::zero(), V::zero()};
  std::ptrdiff_t k = 0;
  for (; k + kSums * V::kLanes <= dense.n; k += kSums * V::kLanes) {
    for (int s = 0; s < kSums; ++s) {
      sums[s] =
          V::fma(V::load(b + k + s * V::kLanes), V::load(column + k + s * V::kLanes), sums[s]);
    }
  }
  for (; k + V::kLanes <= dense.n; k += V::kLanes) {
    sums[0] = V::fma(V::load(b + k), V::load(column + k), sums[0]);
  }
  if (k < dense.n) {
    const typename V::Mask mask = V::mask(static_cast<int>(dense.n - k));
    sums[1] = V::fma(V::load(b + k, mask), V::load(column + k, mask), sums[1]);
  }
  dense.out[i] =
      rows.values[i] * V::sum(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
  ++i;
}

// Fetches the rows of C for as many non-zeros from `first` on, none beyond `last`.
template <class T, int kEntries>
[[gnu::always_inline]] inline void fetch_columns(const RowRange<T>& rows,
                                                 const SampledRange<T>& dense, std::int64_t first,
                                                 std::int64_t last) {
  constexpr std::ptrdiff_t kLine = 64 / sizeof(T);
  for (int e = 0; e < kEntries; ++e) {
    const T* const ahead = dense.c + rows.column_of[least(first + e, last)] * dense.stride;
    for (std::ptrdiff_t at = 0; at < dense.n; at += kLine) {
      __builtin_prefetch(ahead + at);
    }
  }
}

template <class V, int kEntries>
void sddmm_kernel(const RowRange<typename V::Value>& rows,
                  const SampledRange<typename V::Value>& dense) {
  const std::int64_t last = rows.starts[rows.last] - 1;
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    const typename V::Value* const b = dense.b + static_cast<std::ptrdiff_t>(row) * dense.stride;
    std::int64_t i = rows.starts[row];
    const std::int64_t end = rows.starts[row + 1];
    if constexpr (kEntries > 1) {
      while (i + kEntries <= end) {
        if (dense.prefetch > 0) {
          fetch_columns<typename V::Value, kEntries>(rows, dense, i + dense.prefetch, last);
        }
        sddmm_entries<V, kEntries>(rows, dense, b, i);
      }
    }
    while (i < end) {
      if (dense.prefetch > 0) {
        fetch_columns<typename V::Value, 1>(rows, dense, i + dense.prefetch, last);
      }
      sddmm_entry<V>(rows, dense, b, i);
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

}  // namespace
}  // namespace foretune::sparse_cpu
