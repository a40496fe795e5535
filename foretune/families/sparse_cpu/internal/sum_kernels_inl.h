// The kernels of sparse_kernels.h that add matrices, and those of tensors, for the vectors that
// sparse_kernels_inl.h describes. Internal to the family. Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/families/sparse_cpu/internal/sparse_kernels_inl.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

// A row is copied, and stays in the nearest cache while its non-zeros are added.
template <class V>
void dense_sum_kernel(const RowRange<typename V::Value>& rows,
                      const DenseRange<typename V::Value>& dense) {
  const std::ptrdiff_t whole = dense.width / V::kLanes * V::kLanes;
  const typename V::Mask mask = V::mask(static_cast<int>(dense.width - whole));
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    const typename V::Value* const b = dense.b + static_cast<std::ptrdiff_t>(row) * dense.ldb;
    typename V::Value* const c = dense.c + static_cast<std::ptrdiff_t>(row) * dense.ldc;
    for (std::ptrdiff_t j = 0; j < whole; j += V::kLanes) {
      V::store(c + j, V::load(b + j));
    }
    if (whole < dense.width) {
      V::store(c + whole, V::load(b + whole, mask), mask);
    }
    for (std::int64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      c[rows.column_of[i]] += rows.values[i];
    }
  }
}

template <class V, bool kThree, bool kStreams>
[[gnu::always_inline]] inline void add_values(const typename V::Value* a,
                                              const typename V::Value* b,
                                              const typename V::Value* c, typename V::Value* out,
                                              std::ptrdiff_t count) {
  std::ptrdiff_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) {
    typename V::Vector sum = V::add(V::load(a + i), V::load(b + i));
    if constexpr (kThree) {
      sum = V::add(sum, V::load(c + i));
    }
    if constexpr (kStreams) {
      V::stream(out + i, sum);
    } else {
      V::store(out + i, sum);
    }
  }
  for (; i < count; ++i) {
    out[i] = a[i] + b[i] + (kThree ? c[i] : 0);
  }
}

template <class V>
void value_sum_kernel(const typename V::Value* a, const typename V::Value* b,
                      const typename V::Value* c, typename V::Value* out, std::ptrdiff_t count,
                      bool streams) {
  if (streams) {
    // Values before the first whole vector of the output.
    constexpr std::size_t kBytes = bound(V::kLanes) * sizeof(typename V::Value);
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(out) % kBytes;
    const auto head = least(
        count, static_cast<std::ptrdiff_t>((kBytes - beyond) % kBytes / sizeof(typename V::Value)));
    for (std::ptrdiff_t i = 0; i < head; ++i) {
      out[i] = a[i] + b[i] + (c == nullptr ? 0 : c[i]);
    }
    c == nullptr
        ? add_values<V, false, true>(a + head, b + head, nullptr, out + head, count - head)
        : add_values<V, true, true>(a + head, b + head, c + head, out + head, count - head);
  } else {
    c == nullptr ? add_values<V, false, false>(a, b, nullptr, out, count)
                 : add_values<V, true, false>(a, b, c, out, count);
  }
}

template <class V, int kVectors, bool kTail>
void mttkrp_rows(const FibreRange<typename V::Value>& fibres,
                 const FactorRange<typename V::Value>& factors) {
  const typename V::Mask mask =
      V::mask(static_cast<int>(factors.width) - (kVectors - 1) * V::kLanes);
  for (std::size_t row = fibres.first; row < fibres.last; ++row) {
    typename V::Vector sums[bound(kVectors)];
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = V::zero();
    }
    for (std::int64_t fibre = fibres.row_starts[row]; fibre < fibres.row_starts[row + 1]; ++fibre) {
      typename V::Vector part[bound(kVectors)];
      for (int v = 0; v < kVectors; ++v) {
        part[v] = V::zero();
      }
      for (std::int64_t i = fibres.starts[fibre]; i < fibres.starts[fibre + 1]; ++i) {
        add_row<V, kVectors, kTail>(
            fibres.values[i], factors.by_depth + fibres.depth_of[i] * factors.stride, mask, part);
      }
      const typename V::Value* const by =
          factors.by_columns + fibres.column_of[fibre] * factors.stride;
      for (int v = 0; v < kVectors; ++v) {
        const typename V::Value* const from = by + v * V::kLanes;
        sums[v] = V::fma(part[v], kTail && v == kVectors - 1 ? V::load(from, mask) : V::load(from),
                         sums[v]);
      }
    }
    store_row<V, kVectors, kTail>(factors.out + static_cast<std::ptrdiff_t>(row) * factors.stride,
                                  nullptr, mask, sums, false);
  }
}

template <class V, int kVectors>
void mttkrp_kernel(const FibreRange<typename V::Value>& fibres,
                   const FactorRange<typename V::Value>& factors) {
  factors.width == kVectors* V::kLanes ? mttkrp_rows<V, kVectors, false>(fibres, factors)
                                       : mttkrp_rows<V, kVectors, true>(fibres, factors);
}

template <class V, int kVectors>
FibreKernel<typename V::Value> choose_mttkrp_of(int vectors) {
  if constexpr (kVectors > kMaxVectors || 2 * kVectors > V::kSums) {
    return nullptr;
  } else {
    return vectors == kVectors ? &mttkrp_kernel<V, kVectors>
                               : choose_mttkrp_of<V, kVectors + 1>(vectors);
  }
}

template <class V>
FibreKernel<typename V::Value> choose_mttkrp(int vectors) {
  return choose_mttkrp_of<V, 1>(vectors);
}

}  // namespace
}  // namespace foretune::sparse_cpu
