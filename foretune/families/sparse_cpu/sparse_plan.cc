#include "foretune/families/sparse_cpu/sparse_plan.h"

#include <algorithm>

namespace foretune::sparse_cpu {
namespace {

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

tl::unexpected<Error> no_kernel(const SparseCpuConfig& config) {
  return fail(ErrorCode::kUnsupported, "there is no kernel for vectors=", config.vectors,
              " unroll=", config.unroll, " group=", config.group);
}

}  // namespace

template <class T>
Result<SparsePlan<T>> SparsePlan<T>::create(const sparse::Csr<T>& matrix, const SparseSizes& sizes,
                                            const SparseCpuConfig& config, ThreadPool* pool,
                                            std::uint64_t max_bytes) {
  const SparseKernels<T>* const kernels = sparse_kernels<T>(config.isa);
  if (kernels == nullptr) {
    return fail(ErrorCode::kUnsupported, "the CPU lacks the instructions of ",
                to_string(config.isa));
  }
  if (config.threads > 1 && pool == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "several threads need a pool");
  }
  SparsePlan plan(matrix, sizes, config, config.threads > 1 ? pool : nullptr);
  FORETUNE_TRY_STATUS(plan.choose_kernels(*kernels));
  plan.items_ = as_size(matrix.rows);
  if (config.format == SparseFormat::kSell) {
    ThreadPool one(1);
    const sparse::SliceShape slice{config.height, config.window};
    FORETUNE_TRY(plan.sell_,
                 sparse::pack_sell(matrix, slice, {pool == nullptr ? one : *pool, max_bytes}));
    plan.packed_bytes_ = plan.sell_.starts.bytes() + plan.sell_.row_of.bytes() +
                         plan.sell_.column_of.bytes() + plan.sell_.values.bytes();
    plan.items_ = plan.sell_.starts.size() - 1;
  }
  plan.make_shares();
  return plan;
}

template <class T>
Status SparsePlan<T>::choose_kernels(const SparseKernels<T>& kernels) {
  switch (sizes_.operation) {
    case SparseOperation::kSpmv:
      if (config_.format == SparseFormat::kSell) {
        if (config_.height % (config_.unroll * kernels.lanes) == 0) {
          sell_kernel_ = kernels.sell(config_.unroll);
        }
      } else {
        spmv_ = kernels.spmv(config_.vector == SparseVector::kEntries, config_.unroll);
      }
      return spmv_ == nullptr && sell_kernel_ == nullptr ? Status(no_kernel(config_)) : Status();
    case SparseOperation::kSddmm:
      sddmm_ = kernels.sddmm(config_.unroll);
      return sddmm_ == nullptr ? Status(no_kernel(config_)) : Status();
    default:
      break;
  }
  // Blocks of columns differ by one vector at most.
  const std::int64_t vectors = ceil_div(sizes_.width, kernels.lanes);
  const std::int64_t count = ceil_div(vectors, config_.vectors);
  std::int64_t begin = 0;
  for (std::int64_t block = 0; block < count; ++block) {
    const std::int64_t end = vectors * (block + 1) / count;
    const SpmmKernel<T> kernel =
        kernels.spmm(static_cast<int>(end - begin), config_.unroll, config_.group);
    if (kernel == nullptr) {
      return no_kernel(config_);
    }
    const std::int64_t first = begin * kernels.lanes;
    blocks_.push_back({first, std::min(end * kernels.lanes, sizes_.width) - first, kernel});
    begin = end;
  }
  return {};
}

template <class T>
void SparsePlan<T>::make_shares() {
  const auto threads = as_size(config_.threads);
  const bool by_columns = config_.partition == SparsePartition::kColumns;
  const std::size_t all = by_columns ? blocks_.size() : items_;
  bounds_.assign(threads + 1, all);
  bounds_[0] = 0;
  const bool is_packed = config_.format == SparseFormat::kSell;
  const std::int64_t* const starts = is_packed ? sell_.starts.data() : matrix_->starts.data();
  for (std::size_t share = 1; share < threads; ++share) {
    if (config_.partition != SparsePartition::kNonZeros) {
      bounds_[share] = all * share / threads;
      continue;
    }
    const std::int64_t wanted =
        starts[items_] * static_cast<std::int64_t>(share) / static_cast<std::int64_t>(threads);
    bounds_[share] = as_size(std::lower_bound(starts, starts + items_, wanted) - starts);
  }
}

template <class T>
void SparsePlan<T>::run_items(const SparseOperands<T>& operands, std::size_t first,
                              std::size_t last, std::size_t first_block,
                              std::size_t last_block) const {
  const auto width = static_cast<std::ptrdiff_t>(sizes_.width);
  if (sell_kernel_ != nullptr) {
    sell_kernel_({sell_.starts.data(), sell_.row_of.data(), sell_.column_of.data(),
                  sell_.values.data(), as_size(config_.height), first, last},
                 operands.first, operands.output);
  } else if (spmv_ != nullptr) {
    spmv_(rows(first, last), operands.first, operands.output);
  } else if (sddmm_ != nullptr) {
    sddmm_(rows(first, last), operands.first, width, operands.second, width, width,
           operands.output);
  } else {
    const auto tile = as_size(config_.row_tile);
    for (std::size_t row = first; row < last; row += std::min(tile, last - row)) {
      const std::size_t end = row + std::min(tile, last - row);
      for (std::size_t i = first_block; i < last_block; ++i) {
        const ColumnBlock& block = blocks_[i];
        block.kernel(rows(row, end), operands.first + block.first, width,
                     operands.output + block.first, width, block.width);
      }
    }
  }
}

template <class T>
void SparsePlan<T>::run_share(const SparseOperands<T>& operands, std::size_t share,
                              std::atomic<std::size_t>& next) const {
  if (config_.partition == SparsePartition::kColumns) {
    run_items(operands, 0, items_, bounds_[share], bounds_[share + 1]);
  } else if (config_.partition != SparsePartition::kDynamic) {
    run_items(operands, bounds_[share], bounds_[share + 1], 0, blocks_.size());
  } else {
    const auto chunk = as_size(config_.chunk);
    for (std::size_t first = next.fetch_add(chunk); first < items_; first = next.fetch_add(chunk)) {
      run_items(operands, first, std::min(first + chunk, items_), 0, blocks_.size());
    }
  }
}

template <class T>
void SparsePlan<T>::run(const SparseOperands<T>& operands) const {
  std::atomic<std::size_t> next = 0;
  if (pool_ == nullptr) {
    run_items(operands, 0, items_, 0, blocks_.size());
    return;
  }
  pool_->run(as_size(config_.threads),
             [&](std::size_t share) { run_share(operands, share, next); });
}

template class SparsePlan<float>;
template class SparsePlan<double>;

}  // namespace foretune::sparse_cpu
