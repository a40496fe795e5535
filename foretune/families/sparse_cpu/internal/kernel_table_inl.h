// The kernels of an instruction set as a table. Internal to the family; the files of the
// instruction sets include it. Thread safety: free functions.
#pragma once

#include "foretune/families/sparse_cpu/internal/block_kernels_inl.h"
#include "foretune/families/sparse_cpu/internal/buffered_kernels_inl.h"
#include "foretune/families/sparse_cpu/internal/sparse_kernels_inl.h"
#include "foretune/families/sparse_cpu/internal/sum_kernels_inl.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

template <class V>
constexpr SparseKernels<typename V::Value> kernels_of() {
  return {.lanes = V::kLanes,
          .block_registers = V::kBlockRegisters,
          .spmm = &choose_spmm<V>,
          .buffered_spmm = &choose_buffered<V>,
          .slice_spmm = &choose_slice_spmm<V>,
          .block_spmm = &choose_block_spmm<V>,
          .spmv = &choose_spmv<V>,
          .sell = &choose_sell<V>,
          .block_spmv = &choose_block_spmv<V, BlockKind::kBlocks>,
          .diagonal_spmv = &choose_block_spmv<V, BlockKind::kDiagonals>,
          .sddmm = &choose_sddmm<V>,
          .dense_sum = &dense_sum_kernel<V>,
          .value_sum = &value_sum_kernel<V>,
          .mttkrp = &choose_mttkrp<V>,
          .finish_streams = &V::fence};
}

}  // namespace
}  // namespace foretune::sparse_cpu
