// A sparse operation with one config: the packed matrix, the shares of the threads and the kernels.
//
//   FORETUNE_TRY(auto plan, SparsePlan<float>::create(matrix, sizes, config, pool, max_bytes));
//   plan.run({first, second, output});
//
// Thread safety: run() uses the pool, which runs one loop at a time. Cost: create() packs; run()
// does not allocate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/space/schemas/sparse_cpu.h"
#include "foretune/sparse/csr.h"
#include "foretune/sparse/fibres.h"
#include "foretune/sparse/storage.h"

namespace foretune::sparse_cpu {

// Operands in the layout of sparse_data.h.
template <class T>
struct SparseOperands {
  const T* first = nullptr;
  const T* second = nullptr;
  T* output = nullptr;
};

template <class T>
class SparsePlan {
 public:
  // The matrix and the pool must outlive the plan; one thread needs no pool. Errors: kUnsupported
  // for a config without a kernel, and for a storage above max_bytes, with its bytes.
  static Result<SparsePlan> create(const sparse::Csr<T>& matrix, const SparseSizes& sizes,
                                   const SparseCpuConfig& config, ThreadPool* pool,
                                   std::uint64_t max_bytes);

  void run(const SparseOperands<T>& operands) const;
  // Bytes of the packed matrix; 0 where it is used as it is.
  [[nodiscard]] std::uint64_t packed_bytes() const { return packed_bytes_; }

 private:
  // A block of dense columns and its kernel.
  struct ColumnBlock {
    std::ptrdiff_t first = 0;
    std::ptrdiff_t width = 0;
    SpmmKernel<T> kernel = nullptr;
    SliceSpmmKernel<T> slice_kernel = nullptr;  // of SELL, in place of the first
    BlockSpmmKernel<T> block_kernel = nullptr;  // of BCSR, likewise
    FibreKernel<T> fibre_kernel = nullptr;      // of mttkrp
  };

  SparsePlan(const sparse::Csr<T>& matrix, const SparseSizes& sizes, const SparseCpuConfig& config,
             ThreadPool* pool)
      : matrix_(&matrix), sizes_(sizes), config_(config), pool_(pool) {}
  Status choose_kernels(const SparseKernels<T>& kernels);
  Status choose_spmv(const SparseKernels<T>& kernels);
  Status choose_blocks(const SparseKernels<T>& kernels);
  Status choose_block(const SparseKernels<T>& kernels, int vectors, ColumnBlock& block) const;
  Status pack(std::uint64_t max_bytes);
  void make_shares();
  // Works on items [first, last): rows, or slices or rows of blocks of a packed matrix.
  void run_items(const SparseOperands<T>& operands, std::size_t first, std::size_t last,
                 std::size_t first_block, std::size_t last_block) const;
  void run_share(const SparseOperands<T>& operands, std::size_t share,
                 std::atomic<std::size_t>& next) const;
  void run_columns(const SparseOperands<T>& operands, std::size_t first, std::size_t last,
                   std::size_t first_block, std::size_t last_block) const;
  // Returns where the non-zeros of each item start, or the stored values or blocks of a packed one.
  [[nodiscard]] const std::int64_t* starts() const;
  [[nodiscard]] SliceRange<T> slices(std::size_t first, std::size_t last) const {
    return {sell_.starts.data(),
            sell_.row_of.data(),
            sell_.column_of.data(),
            sell_.values.data(),
            static_cast<std::size_t>(config_.height),
            first,
            last};
  }
  [[nodiscard]] BlockRange<T> blocks(std::size_t first, std::size_t last) const;
  [[nodiscard]] FibreRange<T> fibres(std::size_t first, std::size_t last) const {
    return {fibres_.row_starts.data(),
            fibres_.starts.data(),
            fibres_.column_of.data(),
            fibres_.depth_of.data(),
            matrix_->values.data(),
            first,
            last};
  }
  void add_values(const SparseOperands<T>& operands, std::size_t first, std::size_t last) const;
  [[nodiscard]] RowRange<T> rows(std::size_t first, std::size_t last) const {
    return {matrix_->starts.data(), matrix_->column_of.data(), matrix_->values.data(), first, last};
  }

  const sparse::Csr<T>* matrix_;
  SparseSizes sizes_;
  SparseCpuConfig config_;
  ThreadPool* pool_;
  sparse::Sell<T> sell_;
  sparse::Bcsr<T> bcsr_;
  sparse::BlockDiagonals<T> diagonals_;
  sparse::Fibres fibres_;
  std::uint64_t packed_bytes_ = 0;
  std::vector<ColumnBlock> blocks_;
  SpmvKernel<T> spmv_ = nullptr;
  SellKernel<T> sell_kernel_ = nullptr;
  BlockSpmvKernel<T> block_spmv_ = nullptr;
  SddmmKernel<T> sddmm_ = nullptr;
  DenseSumKernel<T> dense_sum_ = nullptr;
  ValueSumKernel<T> value_sum_ = nullptr;
  void (*finish_streams_)() = nullptr;  // where results are written past the caches
  std::size_t items_ = 0;
  std::vector<std::size_t> bounds_;  // of each thread's items; of its blocks when they are shared
};

extern template class SparsePlan<float>;
extern template class SparsePlan<double>;

}  // namespace foretune::sparse_cpu
