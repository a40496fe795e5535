// The products of sparse_kernels.h whose sums lie in a buffer, for the vectors that
// sparse_kernels_inl.h describes. Internal to the family.
//
// Registers hold the sums of some columns only, so that a row of B is read in parts, far from each
// other in time. The buffer stays in the nearest cache and holds all of them: each row of B is read
// once and whole. Several non-zeros share the reads and writes of the buffer.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/families/sparse_cpu/internal/sparse_kernels_inl.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

constexpr std::ptrdiff_t kCacheLine = 64;  // bytes

// The columns of a product: whole vectors, and a last one with a mask.
template <class V>
struct BufferedColumns {
  std::ptrdiff_t whole = 0;  // values
  std::ptrdiff_t all = 0;
  typename V::Mask mask;
  bool streams = false;
};

// Adds kCount rows of B times their values. kFirst: the sums begin with what is added, or 0, else
// with the buffer's. kLast: they go to c, else to the buffer.
template <class V, int kCount, bool kFirst, bool kLast>
[[gnu::always_inline]] inline void add_rows(const typename V::Value* const* b,
                                            const typename V::Vector* factors,
                                            const BufferedColumns<V>& columns,
                                            const typename V::Value* added,
                                            typename V::Value* buffer, typename V::Value* c) {
  std::ptrdiff_t j = 0;
  for (; j < columns.whole; j += V::kLanes) {
    typename V::Vector sum = !kFirst            ? V::load(buffer + j)
                             : added == nullptr ? V::zero()
                                                : V::load(added + j);
    for (int u = 0; u < kCount; ++u) {
      sum = V::fma(factors[u], V::load(b[u] + j), sum);
    }
    if (!kLast) {
      V::store(buffer + j, sum);
    } else if (columns.streams) {
      V::stream(c + j, sum);
    } else {
      V::store(c + j, sum);
    }
  }
  if (j < columns.all) {
    typename V::Vector sum = !kFirst            ? V::load(buffer + j)
                             : added == nullptr ? V::zero()
                                                : V::load(added + j, columns.mask);
    for (int u = 0; u < kCount; ++u) {
      sum = V::fma(factors[u], V::load(b[u] + j, columns.mask), sum);
    }
    if (kLast) {
      V::store(c + j, sum, columns.mask);
    } else {
      V::store(buffer + j, sum);
    }
  }
}

// Adds kCount non-zeros from `i` on.
template <class V, int kCount>
[[gnu::always_inline]] inline void add_entries(const RowRange<typename V::Value>& rows,
                                               const DenseRange<typename V::Value>& dense,
                                               const BufferedColumns<V>& columns, std::int64_t i,
                                               bool is_first, bool is_last,
                                               const typename V::Value* added,
                                               typename V::Value* buffer, typename V::Value* c) {
  const typename V::Value* b[bound(kCount)];
  typename V::Vector factors[bound(kCount)];
  for (int u = 0; u < kCount; ++u) {
    b[u] = dense.b + rows.column_of[i + u] * dense.ldb;
    factors[u] = V::broadcast(rows.values[i + u]);
  }
  if (dense.prefetch > 0) {
    const std::int64_t last = rows.starts[rows.last] - 1;
    for (int u = 0; u < kCount; ++u) {
      const char* const ahead = reinterpret_cast<const char*>(
          dense.b + rows.column_of[least(i + u + dense.prefetch, last)] * dense.ldb);
      const auto bytes = columns.all * static_cast<std::ptrdiff_t>(sizeof(typename V::Value));
      for (std::ptrdiff_t at = 0; at < bytes; at += kCacheLine) {
        __builtin_prefetch(ahead + at);
      }
    }
  }
  if (is_first) {
    is_last ? add_rows<V, kCount, true, true>(b, factors, columns, added, buffer, c)
            : add_rows<V, kCount, true, false>(b, factors, columns, added, buffer, c);
  } else {
    is_last ? add_rows<V, kCount, false, true>(b, factors, columns, added, buffer, c)
            : add_rows<V, kCount, false, false>(b, factors, columns, added, buffer, c);
  }
}

template <class V, int kEntries>
void buffered_spmm_kernel(const RowRange<typename V::Value>& rows,
                          const DenseRange<typename V::Value>& dense) {
  alignas(kCacheLine) typename V::Value buffer[bound(kMaxBuffered * V::kLanes)];
  const std::ptrdiff_t whole = dense.width / V::kLanes * V::kLanes;
  const BufferedColumns<V> columns{
      whole, dense.width, V::mask(static_cast<int>(dense.width - whole)), may_stream<V>(dense)};
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    typename V::Value* const c = dense.c + static_cast<std::ptrdiff_t>(row) * dense.ldc;
    const typename V::Value* const added = added_row(dense, static_cast<std::ptrdiff_t>(row));
    const std::int64_t begin = rows.starts[row];
    const std::int64_t end = rows.starts[row + 1];
    if (begin == end) {
      add_rows<V, 0, true, true>(nullptr, nullptr, columns, added, buffer, c);
    }
    std::int64_t i = begin;
    for (; i + kEntries <= end; i += kEntries) {
      add_entries<V, kEntries>(rows, dense, columns, i, i == begin, i + kEntries == end, added,
                               buffer, c);
    }
    for (; i < end; ++i) {
      add_entries<V, 1>(rows, dense, columns, i, i == begin, i + 1 == end, added, buffer, c);
    }
  }
}

template <class V>
SpmmKernel<typename V::Value> choose_buffered(int entries) {
  switch (entries) {
    case 1:
      return &buffered_spmm_kernel<V, 1>;
    case 2:
      return &buffered_spmm_kernel<V, 2>;
    case 4:
      return &buffered_spmm_kernel<V, 4>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace foretune::sparse_cpu
