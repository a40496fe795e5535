// The innermost loops of sparse products, in each instruction set and for f32 and f64.
//
//   const SparseKernels<float>* kernels = sparse_kernels<float>(CpuIsa::kAvx512);
//   if (const SpmmKernel<float> kernel = kernels->spmm(8, 1, 2)) kernel(rows, {b, ldb, c, ldc,
//   64});
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

// Rows of blocks [first, last) of a matrix in BCSR, or of its diagonals (sparse/storage.h).
template <class T>
struct BlockRange {
  const std::int64_t* starts = nullptr;
  const std::int32_t* column_of = nullptr;
  const T* values = nullptr;
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t rows = 0;  // of the whole matrix
  std::int64_t columns = 0;
  std::int32_t width = 1;  // columns of a block
};

// The dense operands of a product with a matrix, beginning at its first row.
template <class T>
struct DenseRange {
  const T* b = nullptr;
  std::ptrdiff_t ldb = 0;
  T* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::ptrdiff_t width = 0;
  // Writes c past the caches where it is aligned to vectors. Other threads see it after
  // SparseKernels::finish_streams().
  bool streams = false;
  // Non-zeros ahead of the current one whose row of b is fetched into the caches; 0: none. Kernels
  // with buffered sums do so.
  std::int32_t prefetch = 0;
  // Added to the sums, rows ldc apart; nullptr: nothing is.
  const T* added = nullptr;
};

// The vectors of a product with a vector, each from its beginning.
template <class T>
struct VectorRange {
  const T* x = nullptr;
  T* y = nullptr;
  const T* added = nullptr;  // to the sums, as long as y; nullptr: nothing is
};

// Rows [first, last) of a tensor of order 3 as fibres (sparse/fibres.h).
template <class T>
struct FibreRange {
  const std::int64_t* row_starts = nullptr;
  const std::int64_t* starts = nullptr;  // of each fibre's non-zeros
  const std::int32_t* column_of = nullptr;
  const std::int32_t* depth_of = nullptr;
  const T* values = nullptr;
  std::size_t first = 0;
  std::size_t last = 0;
};

// The dense operands of mttkrp, rows `stride` values apart.
template <class T>
struct FactorRange {
  const T* by_columns = nullptr;
  const T* by_depth = nullptr;
  T* out = nullptr;
  std::ptrdiff_t stride = 0;
  std::ptrdiff_t width = 0;
};

// c[row][j] = sum of values times b[column][j], plus added[row][j], for j below width: more than
// `vectors - 1` vectors and at most `vectors`.
template <class T>
using SpmmKernel = void (*)(const RowRange<T>& rows, const DenseRange<T>& dense);
template <class T>
using SliceSpmmKernel = void (*)(const SliceRange<T>& slices, const DenseRange<T>& dense);
template <class T>
using BlockSpmmKernel = void (*)(const BlockRange<T>& blocks, const DenseRange<T>& dense);
// y[row] = sum of values times x[column], plus added[row].
template <class T>
using SpmvKernel = void (*)(const RowRange<T>& rows, const VectorRange<T>& vectors);
template <class T>
using SellKernel = void (*)(const SliceRange<T>& slices, const VectorRange<T>& vectors);
template <class T>
using BlockSpmvKernel = void (*)(const BlockRange<T>& blocks, const VectorRange<T>& vectors);
// The operands of a sampled product.
template <class T>
struct SampledRange {
  const T* b = nullptr;
  const T* c = nullptr;
  std::ptrdiff_t stride = 0;  // from row to row of both, which have n values
  std::ptrdiff_t n = 0;
  T* out = nullptr;
  int prefetch = 0;  // non-zeros ahead whose row of c is fetched; 0: none
};
// out[i] = values[i] times the dot product of b[row] and c[column], for each non-zero i of the
// rows.
template <class T>
using SddmmKernel = void (*)(const RowRange<T>& rows, const SampledRange<T>& dense);

// c[row][j] = b[row][j] plus the value at (row, j), for all j below width. Leaves `added` alone.
template <class T>
using DenseSumKernel = void (*)(const RowRange<T>& rows, const DenseRange<T>& dense);
// out[i] = a[i] + b[i], plus c[i] unless c is nullptr, for `count` values. `streams` writes past
// the caches where out is aligned to vectors.
template <class T>
using ValueSumKernel = void (*)(const T* a, const T* b, const T* c, T* out, std::ptrdiff_t count,
                                bool streams);
// out[row][j] = sum over the fibres of by_columns[column][j] times the sum of values times
// by_depth[depth][j], for j below width, as in SpmmKernel.
template <class T>
using FibreKernel = void (*)(const FibreRange<T>& fibres, const FactorRange<T>& factors);

inline constexpr int kMaxVectors = 8;    // of columns in a register block
inline constexpr int kMaxBuffered = 64;  // of columns in a buffer

// Each function returns nullptr where there is no such kernel.
template <class T>
struct SparseKernels {
  int lanes = 1;
  int block_registers = 16;  // that a block of spmm may take
  // `vectors` of columns are held in registers, for `group` rows at a time (1, 2, 4), or for one
  // row with `unroll` sums (1, 2, 4) that are added in the end. vectors * max(unroll, group) is at
  // most 16, and 8 without AVX-512.
  SpmmKernel<T> (*spmm)(int vectors, int unroll, int group) = nullptr;
  // The sums of a row in a buffer of at most kMaxBuffered vectors, `entries` non-zeros (1, 2, 4)
  // added at once: rows of b are read whole, which the CPU's own prefetching follows better than
  // parts.
  SpmmKernel<T> (*buffered_spmm)(int entries) = nullptr;
  // Slices of `height` rows (1, 2, 4), each with `vectors` of sums: height * vectors is at most 16,
  // and 8 without AVX-512.
  SliceSpmmKernel<T> (*slice_spmm)(int height, int vectors) = nullptr;
  // Blocks of `height` rows (2, 3, 4, 6, 8), each with `vectors` of sums. Rows and columns of
  // blocks beyond the matrix are left out. height * vectors + vectors + 1 is at most
  // `block_registers`.
  BlockSpmmKernel<T> (*block_spmm)(int height, int vectors) = nullptr;
  // Vectors along the non-zeros of a row, or none; `unroll` sums (1, 2, 4). `by_loads` fills
  // vectors of x by loads of single values, not by the instruction that gathers.
  SpmvKernel<T> (*spmv)(bool along_entries, int unroll, bool by_loads) = nullptr;
  // Vectors along the rows of a slice: the height is a multiple of `unroll` (1, 2, 4) vectors,
  // which are summed at once.
  SellKernel<T> (*sell)(int unroll, bool by_loads) = nullptr;
  // Vectors along the `height` rows of a block, one column wide: 1, 2 or 4 vectors. `unroll` blocks
  // (1, 2, 4) are summed apart, 8 vectors in all at most.
  BlockSpmvKernel<T> (*block_spmv)(int height, int unroll) = nullptr;
  // The same for the diagonals of blocks: vectors of x are loaded where a diagonal lies.
  BlockSpmvKernel<T> (*diagonal_spmv)(int height, int unroll) = nullptr;
  // `entries` non-zeros (1, 2, 4, 8) share the loads of b; the rest of a row goes one by one.
  SddmmKernel<T> (*sddmm)(int entries) = nullptr;
  DenseSumKernel<T> dense_sum = nullptr;
  ValueSumKernel<T> value_sum = nullptr;
  // Twice `vectors` of sums: at most 16, and 8 without AVX-512.
  FibreKernel<T> (*mttkrp)(int vectors) = nullptr;
  // Orders writes past the caches before what follows.
  void (*finish_streams)() = nullptr;
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
