// The innermost loops of sparse products, in each instruction set and for f32 and f64.
//
//   const SparseKernels<float>* kernels = sparse_kernels<float>(CpuIsa::kAvx512);
//   if (const SpmmKernel<float> kernel = kernels->spmm(8, 1, 2)) kernel(rows, b, ldb, c, ldc, 128);
//
// Dense matrices are stored by rows; a leading dimension is the distance of rows, in values. No
// kernel reads or writes a value outside of the given rows and columns, tails included. Thread
// safety: free functions on constant tables; several threads may write different rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune::sparse_cpu {

// Rows [first, last) of a matrix in its canonical form (sparse/csr.h).
template <class T>
struct RowRange {
  const std::int64_t* starts = nullptr;
  const std::int32_t* column_of = nullptr;
  const T* values = nullptr;
  std::size_t first = 0;
  std::size_t last = 0;
};

// Slices [first, last) of a matrix in SELL-C-sigma (sparse/storage.h).
template <class T>
struct SliceRange {
  const std::int64_t* starts = nullptr;
  const std::int32_t* row_of = nullptr;
  const std::int32_t* column_of = nullptr;
  const T* values = nullptr;
  std::size_t height = 1;
  std::size_t first = 0;
  std::size_t last = 0;
};

// c[row][j] = sum of values times b[column][j], for j below width: more than `vectors - 1` vectors
// and at most `vectors`.
template <class T>
using SpmmKernel = void (*)(const RowRange<T>& rows, const T* b, std::ptrdiff_t ldb, T* c,
                            std::ptrdiff_t ldc, std::ptrdiff_t width);
// y[row] = sum of values times x[column].
template <class T>
using SpmvKernel = void (*)(const RowRange<T>& rows, const T* x, T* y);
template <class T>
using SellKernel = void (*)(const SliceRange<T>& slices, const T* x, T* y);
// out[i] = values[i] times the dot product of b[row] and c[column], each of n values, for each
// non-zero i of the rows.
template <class T>
using SddmmKernel = void (*)(const RowRange<T>& rows, const T* b, std::ptrdiff_t ldb, const T* c,
                             std::ptrdiff_t ldc, std::ptrdiff_t n, T* out);

inline constexpr int kMaxVectors = 8;  // of columns in a register block

// Each function returns nullptr where there is no such kernel.
template <class T>
struct SparseKernels {
  int lanes = 1;
  // `vectors` of columns are held in registers, for `group` rows at a time (1, 2, 4), or for one
  // row with `unroll` sums (1, 2, 4) that are added in the end. vectors * max(unroll, group) is at
  // most 16, and 8 without AVX-512.
  SpmmKernel<T> (*spmm)(int vectors, int unroll, int group) = nullptr;
  // Vectors along the non-zeros of a row, or none; `unroll` sums (1, 2, 4).
  SpmvKernel<T> (*spmv)(bool along_entries, int unroll) = nullptr;
  // Vectors along the rows of a slice: the height is a multiple of `unroll` (1, 2, 4) vectors,
  // which are summed at once.
  SellKernel<T> (*sell)(int unroll) = nullptr;
  // `entries` non-zeros (1, 2, 4, 8) share the loads of b.
  SddmmKernel<T> (*sddmm)(int entries) = nullptr;
};

// Returns nullptr where this CPU or this build lacks the instructions. T is float or double.
template <class T>
const SparseKernels<T>* sparse_kernels(CpuIsa isa);

template <>
const SparseKernels<float>* sparse_kernels(CpuIsa isa);
template <>
const SparseKernels<double>* sparse_kernels(CpuIsa isa);

// The tables of each instruction set's file, nullptr for another architecture.
struct SparseKernelTables {
  const SparseKernels<float>* f32 = nullptr;
  const SparseKernels<double>* f64 = nullptr;
};
SparseKernelTables generic_sparse_kernels();
SparseKernelTables avx2_sparse_kernels();
SparseKernelTables avx512_sparse_kernels();

}  // namespace foretune::sparse_cpu
