#include "foretune/families/sparse_cpu/sparse_plan.h"

#include <algorithm>

namespace foretune::sparse_cpu {
namespace {

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

tl::unexpected<Error> no_kernel(const SparseCpuConfig& config) {
  return fail(ErrorCode::kUnsupported, "there is no kernel for vectors=", config.vectors,
              " unroll=", config.unroll, " group=", config.group, " height=", config.height);
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
  FORETUNE_TRY_STATUS(plan.pack(max_bytes));
  plan.make_shares();
  return plan;
}

template <class T>
Status SparsePlan<T>::pack(std::uint64_t max_bytes) {
  if (sizes_.operation == SparseOperation::kMttkrp) {
    FORETUNE_TRY(fibres_, sparse::fibres_of(matrix_->pattern(), sizes_.depth));
    packed_bytes_ = fibres_.bytes();
    return {};
  }
  ThreadPool one(1);
  const sparse::PackOptions options{pool_ == nullptr ? one : *pool_, max_bytes};
  if (config_.format == SparseFormat::kSell) {
    FORETUNE_TRY(sell_, sparse::pack_sell(*matrix_, {config_.height, config_.window}, options));
    packed_bytes_ = sell_.starts.bytes() + sell_.row_of.bytes() + sell_.column_of.bytes() +
                    sell_.values.bytes();
    items_ = sell_.starts.size() - 1;
  } else if (config_.format == SparseFormat::kBcsr) {
    FORETUNE_TRY(bcsr_, sparse::pack_bcsr(*matrix_, {config_.height, config_.width}, options));
    packed_bytes_ = bcsr_.starts.bytes() + bcsr_.column_of.bytes() + bcsr_.values.bytes();
    items_ = bcsr_.starts.size() - 1;
  } else if (config_.format == SparseFormat::kDiagonals) {
    FORETUNE_TRY(diagonals_, sparse::pack_block_diagonals(*matrix_, config_.height, options));
    packed_bytes_ =
        diagonals_.starts.bytes() + diagonals_.column_of.bytes() + diagonals_.values.bytes();
    items_ = diagonals_.starts.size() - 1;
  }
  return {};
}

template <class T>
Status SparsePlan<T>::choose_kernels(const SparseKernels<T>& kernels) {
  finish_streams_ = config_.store == SparseStore::kStream ? kernels.finish_streams : nullptr;
  switch (sizes_.operation) {
    case SparseOperation::kSpmv:
    case SparseOperation::kGespmv:
      return choose_spmv(kernels);
    case SparseOperation::kSpmm:
    case SparseOperation::kGespmm:
    case SparseOperation::kMttkrp:
      return choose_blocks(kernels);
    case SparseOperation::kSddmm:
      sddmm_ = kernels.sddmm(config_.unroll);
      return sddmm_ == nullptr ? Status(no_kernel(config_)) : Status();
    case SparseOperation::kMmadd:
      dense_sum_ = kernels.dense_sum;
      return {};
    case SparseOperation::kPlus2:
    case SparseOperation::kPlus3:
      value_sum_ = kernels.value_sum;
      return {};
  }
  return no_kernel(config_);
}

template <class T>
Status SparsePlan<T>::choose_spmv(const SparseKernels<T>& kernels) {
  const bool by_loads = config_.gather == SparseGather::kLoads;
  switch (config_.format) {
    case SparseFormat::kSell:
      if (config_.height % (config_.unroll * kernels.lanes) == 0) {
        sell_kernel_ = kernels.sell(config_.unroll, by_loads);
      }
      break;
    case SparseFormat::kBcsr:
      if (config_.width == 1) {
        block_spmv_ = kernels.block_spmv(config_.height, config_.unroll);
      }
      break;
    case SparseFormat::kDiagonals:
      block_spmv_ = kernels.diagonal_spmv(config_.height, config_.unroll);
      break;
    case SparseFormat::kCsr:
      spmv_ = kernels.spmv(config_.vector == SparseVector::kEntries, config_.unroll, by_loads);
      break;
  }
  return spmv_ == nullptr && sell_kernel_ == nullptr && block_spmv_ == nullptr
             ? Status(no_kernel(config_))
             : Status();
}

template <class T>
Status SparsePlan<T>::choose_block(const SparseKernels<T>& kernels, int vectors,
                                   ColumnBlock& block) const {
  if (sizes_.operation == SparseOperation::kMttkrp) {
    block.fibre_kernel = kernels.mttkrp(vectors);
    return block.fibre_kernel == nullptr ? Status(no_kernel(config_)) : Status();
  }
  switch (config_.format) {
    case SparseFormat::kSell:
      block.slice_kernel = kernels.slice_spmm(config_.height, vectors);
      break;
    case SparseFormat::kBcsr:
      block.block_kernel = kernels.block_spmm(config_.height, vectors);
      break;
    case SparseFormat::kDiagonals:
      break;
    case SparseFormat::kCsr:
      block.kernel = config_.sums == SparseSums::kBuffer
                         ? kernels.buffered_spmm(config_.unroll)
                         : kernels.spmm(vectors, config_.unroll, config_.group);
      break;
  }
  return block.kernel == nullptr && block.slice_kernel == nullptr && block.block_kernel == nullptr
             ? Status(no_kernel(config_))
             : Status();
}

template <class T>
Status SparsePlan<T>::choose_blocks(const SparseKernels<T>& kernels) {
  // Blocks of columns differ by one vector at most.
  const std::int64_t vectors = ceil_div(sizes_.width, kernels.lanes);
  const bool is_buffered = config_.sums == SparseSums::kBuffer;
  const std::int64_t count = ceil_div(vectors, is_buffered ? kMaxBuffered : config_.vectors);
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = vectors * (i + 1) / count;
    const std::int64_t first = begin * kernels.lanes;
    ColumnBlock block{.first = first, .width = std::min(end * kernels.lanes, sizes_.width) - first};
    FORETUNE_TRY_STATUS(choose_block(kernels, static_cast<int>(end - begin), block));
    blocks_.push_back(block);
    begin = end;
  }
  return {};
}

template <class T>
const std::int64_t* SparsePlan<T>::starts() const {
  switch (config_.format) {
    case SparseFormat::kSell:
      return sell_.starts.data();
    case SparseFormat::kBcsr:
      return bcsr_.starts.data();
    case SparseFormat::kDiagonals:
      return diagonals_.starts.data();
    case SparseFormat::kCsr:
      break;
  }
  return matrix_->starts.data();
}

template <class T>
BlockRange<T> SparsePlan<T>::blocks(std::size_t first, std::size_t last) const {
  if (config_.format == SparseFormat::kDiagonals) {
    return {.starts = diagonals_.starts.data(),
            .column_of = diagonals_.column_of.data(),
            .values = diagonals_.values.data(),
            .first = first,
            .last = last,
            .rows = matrix_->rows,
            .columns = matrix_->columns};
  }
  return {.starts = bcsr_.starts.data(),
          .column_of = bcsr_.column_of.data(),
          .values = bcsr_.values.data(),
          .first = first,
          .last = last,
          .rows = matrix_->rows,
          .columns = matrix_->columns,
          .width = bcsr_.block.columns};
}

template <class T>
void SparsePlan<T>::make_shares() {
  const auto threads = as_size(config_.threads);
  const bool by_columns = config_.partition == SparsePartition::kColumns;
  const std::size_t all = by_columns ? blocks_.size() : items_;
  bounds_.assign(threads + 1, all);
  bounds_[0] = 0;
  const std::int64_t* const from = starts();
  for (std::size_t share = 1; share < threads; ++share) {
    if (config_.partition != SparsePartition::kNonZeros) {
      bounds_[share] = all * share / threads;
      continue;
    }
    const std::int64_t wanted =
        from[items_] * static_cast<std::int64_t>(share) / static_cast<std::int64_t>(threads);
    bounds_[share] = as_size(std::lower_bound(from, from + items_, wanted) - from);
  }
}

template <class T>
void SparsePlan<T>::run_items(const SparseOperands<T>& operands, std::size_t first,
                              std::size_t last, std::size_t first_block,
                              std::size_t last_block) const {
  const auto width = static_cast<std::ptrdiff_t>(sizes_.width);
  const VectorRange<T> vectors{operands.first, operands.output, operands.second};
  if (sell_kernel_ != nullptr) {
    sell_kernel_(slices(first, last), vectors);
  } else if (block_spmv_ != nullptr) {
    block_spmv_(blocks(first, last), vectors);
  } else if (spmv_ != nullptr) {
    spmv_(rows(first, last), vectors);
  } else if (value_sum_ != nullptr) {
    add_values(operands, first, last);
  } else if (dense_sum_ != nullptr) {
    const auto stride = static_cast<std::ptrdiff_t>(sizes_.columns);
    dense_sum_(rows(first, last), {operands.first, stride, operands.output, stride, stride});
  } else if (sddmm_ != nullptr) {
    sddmm_(rows(first, last),
           {operands.first, operands.second, width, width, operands.output, config_.prefetch});
  } else {
    run_columns(operands, first, last, first_block, last_block);
  }
}

template <class T>
void SparsePlan<T>::add_values(const SparseOperands<T>& operands, std::size_t first,
                               std::size_t last) const {
  const std::int64_t begin = matrix_->starts[first];
  const T* const third =
      sizes_.operation == SparseOperation::kPlus3 ? operands.second + begin : nullptr;
  value_sum_(matrix_->values.data() + begin, operands.first + begin, third, operands.output + begin,
             matrix_->starts[last] - begin, finish_streams_ != nullptr);
  if (finish_streams_ != nullptr) {
    finish_streams_();
  }
}

template <class T>
void SparsePlan<T>::run_columns(const SparseOperands<T>& operands, std::size_t first,
                                std::size_t last, std::size_t first_block,
                                std::size_t last_block) const {
  // One block of columns passes in the same order whatever the tile.
  const std::size_t tile = last_block - first_block == 1
                               ? last - first
                               : as_size(ceil_div(config_.row_tile, config_.height));
  const auto width = static_cast<std::ptrdiff_t>(sizes_.width);
  for (std::size_t item = first; item < last; item += std::min(tile, last - item)) {
    const std::size_t end = item + std::min(tile, last - item);
    for (std::size_t i = first_block; i < last_block; ++i) {
      const ColumnBlock& block = blocks_[i];
      if (block.fibre_kernel != nullptr) {
        block.fibre_kernel(fibres(item, end),
                           {operands.first + block.first, operands.second + block.first,
                            operands.output + block.first, width, block.width});
        continue;
      }
      const DenseRange<T> dense{
          .b = operands.first + block.first,
          .ldb = width,
          .c = operands.output + block.first,
          .ldc = width,
          .width = block.width,
          .streams = finish_streams_ != nullptr,
          .prefetch = config_.prefetch,
          .added = operands.second == nullptr ? nullptr : operands.second + block.first};
      switch (config_.format) {
        case SparseFormat::kSell:
          block.slice_kernel(slices(item, end), dense);
          break;
        case SparseFormat::kBcsr:
          block.block_kernel(blocks(item, end), dense);
          break;
        case SparseFormat::kDiagonals:
          break;
        case SparseFormat::kCsr:
          block.kernel(rows(item, end), dense);
          break;
      }
    }
  }
  if (finish_streams_ != nullptr) {
    finish_streams_();
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
