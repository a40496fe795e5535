#include "foretune/families/cpu_gemm/blocked_gemm.h"

#include <algorithm>

#include "foretune/kernels/packing.h"

namespace foretune {
namespace {

// Depth blocks start at multiples of this, so that rows of A are cut at even places.
constexpr std::ptrdiff_t kDepthUnit = 8;

Status check(const BlockedGemmSizes& sizes, const CpuGemmConfig& config, const ThreadPool* pool) {
  if (sizes.m < 1 || sizes.n < 1 || sizes.k < 1 || sizes.batch < 1) {
    return fail(ErrorCode::kInvalidArgument, "sizes must be at least 1");
  }
  if (const Support support = kernel_set_support(config.isa); !support) {
    return fail(ErrorCode::kUnsupported, support.reason());
  }
  const KernelSet& kernels = *kernel_set(config.isa);
  if (config.nr % kernels.lanes != 0 ||
      kernels.find({.rows = config.mr, .vectors = config.nr / kernels.lanes}) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no ", to_string(config.isa),
                " kernel for blocks of ", config.mr, " x ", config.nr);
  }
  if (config.mc < 1 || config.nc < 1 || config.kc < 1 || config.threads < 1) {
    return fail(ErrorCode::kInvalidArgument, "blocks and threads must be at least 1");
  }
  if (config.threads > 1 &&
      (pool == nullptr || pool->threads() < static_cast<std::size_t>(config.threads))) {
    return fail(ErrorCode::kInvalidArgument, "the config wants ", config.threads,
                " threads, the pool has ", pool == nullptr ? std::size_t{0} : pool->threads());
  }
  return {};
}

}  // namespace

Result<BlockedGemm> BlockedGemm::create(const BlockedGemmSizes& sizes, const CpuGemmConfig& config,
                                        ThreadPool* pool) {
  FORETUNE_TRY_STATUS(check(sizes, config, pool));
  BlockedGemm gemm;
  gemm.sizes_ = sizes;
  gemm.config_ = config;
  gemm.kernels_ = kernel_set(config.isa);
  gemm.block_k_ = std::min(sizes.k, balanced_block(sizes.k, config.kc, kDepthUnit));
  gemm.pool_ = pool;

  const Range batch{0, sizes.batch};
  const Range m{0, sizes.m};
  const Range n{0, sizes.n};
  const auto cut = [&](const Range& range, std::ptrdiff_t unit) {
    const std::ptrdiff_t step =
        balanced_block(range.end, (range.end + config.threads - 1) / config.threads, unit);
    std::vector<Range> ranges;
    for (std::ptrdiff_t begin = 0; begin < range.end; begin += step) {
      ranges.push_back({begin, std::min(begin + step, range.end)});
    }
    return ranges;
  };
  switch (config.split) {
    case GemmSplit::kM:
      for (const Range& range : cut(m, config.mr)) {
        FORETUNE_TRY_STATUS(gemm.add_part(batch, range, n));
      }
      break;
    case GemmSplit::kN:
      for (const Range& range : cut(n, config.nr)) {
        FORETUNE_TRY_STATUS(gemm.add_part(batch, m, range));
      }
      break;
    case GemmSplit::kBatch:
      for (const Range& range : cut(batch, 1)) {
        FORETUNE_TRY_STATUS(gemm.add_part(range, m, n));
      }
      break;
  }
  return gemm;
}

Status BlockedGemm::add_part(const Range& batch, const Range& m, const Range& n) {
  const std::ptrdiff_t mr = config_.mr;
  const std::ptrdiff_t nr = config_.nr;
  const int lanes = kernels_->lanes;
  Part part;
  part.batch = batch;
  part.m = m;
  part.n = n;
  part.block_m = std::min(m.length(), balanced_block(m.length(), config_.mc, mr));
  part.block_n = std::min(n.length(), balanced_block(n.length(), config_.nc, nr));
  const auto edge_rows = static_cast<int>(m.length() % mr);
  const auto edge_columns = static_cast<int>(n.length() % nr);
  const int edge_vectors = (edge_columns + lanes - 1) / lanes;
  part.edge_last_columns = edge_columns - (edge_vectors - 1) * lanes;
  for (const bool lower : {false, true}) {
    for (const bool right : {false, true}) {
      const int rows = lower ? edge_rows : config_.mr;
      const int vectors = right ? edge_vectors : config_.nr / lanes;
      if (rows > 0 && vectors > 0) {
        part.kernels[lower ? 1 : 0][right ? 1 : 0] =
            kernels_->find({.rows = rows,
                            .vectors = vectors,
                            .packed_a = config_.pack_a,
                            .tail = right && part.edge_last_columns < lanes});
      }
    }
  }
  if (config_.pack_a) {
    FORETUNE_TRY(part.packed_a,
                 AlignedBuffer::create(static_cast<std::size_t>(part.block_m * block_k_)));
  }
  if (config_.pack_b) {
    FORETUNE_TRY(part.packed_b, AlignedBuffer::create(static_cast<std::size_t>(
                                    packed_b_size(block_k_, part.block_n, lanes))));
  }
  parts_.push_back(std::move(part));
  return {};
}

void BlockedGemm::run(const GemmOperands& operands) {
  if (parts_.size() == 1) {
    run_part(parts_.front(), operands);
    return;
  }
  // Two pointers: small enough for std::function to hold without allocating.
  pool_->run(parts_.size(), [this, &operands](std::size_t i) { run_part(parts_[i], operands); });
}

void BlockedGemm::run_part(Part& part, const GemmOperands& operands) const {
  GemmOperands here = operands;
  here.a += part.batch.begin * operands.a_batch_stride;
  here.b += part.batch.begin * operands.b_batch_stride;
  here.c += part.batch.begin * operands.c_batch_stride;
  if (here.c_in != nullptr) {
    here.c_in += part.batch.begin * operands.c_in_batch_stride;
  }
  for (std::ptrdiff_t i = part.batch.begin; i < part.batch.end; ++i) {
    if (config_.order == GemmLoopOrder::kNkm) {
      run_nkm(part, here);
    } else {
      run_mkn(part, here);
    }
    here.a += operands.a_batch_stride;
    here.b += operands.b_batch_stride;
    here.c += operands.c_batch_stride;
    if (here.c_in != nullptr) {
      here.c_in += operands.c_in_batch_stride;
    }
  }
}

void BlockedGemm::pack_a(Part& part, const GemmOperands& operands, const Range& m,
                         const Range& k) const {
  if (config_.pack_a) {
    pack_a_panels(operands.a + m.begin * operands.a_stride + k.begin, operands.a_stride, m.length(),
                  k.length(), config_.mr, part.packed_a.data());
  }
}

void BlockedGemm::pack_b(Part& part, const GemmOperands& operands, const Range& n,
                         const Range& k) const {
  if (config_.pack_b) {
    pack_b_panels(operands.b + k.begin * operands.b_stride + n.begin, operands.b_stride, k.length(),
                  n.length(), config_.nr, kernels_->lanes, part.packed_b.data());
  }
}

void BlockedGemm::run_nkm(Part& part, const GemmOperands& operands) const {
  Block block;
  // With one block of depth and of rows, the packed block of A stays what it is.
  const bool keeps_a = block_k_ >= sizes_.k && part.block_m >= part.m.length();
  for (std::ptrdiff_t j = part.n.begin; j < part.n.end; j += part.block_n) {
    block.n = {j, std::min(j + part.block_n, part.n.end)};
    for (std::ptrdiff_t p = 0; p < sizes_.k; p += block_k_) {
      block.k = {p, std::min(p + block_k_, sizes_.k)};
      pack_b(part, operands, block.n, block.k);
      for (std::ptrdiff_t i = part.m.begin; i < part.m.end; i += part.block_m) {
        block.m = {i, std::min(i + part.block_m, part.m.end)};
        if (!keeps_a || j == part.n.begin) {
          pack_a(part, operands, block.m, block.k);
        }
        multiply_block<true>(part, operands, block);
      }
    }
  }
}

void BlockedGemm::run_mkn(Part& part, const GemmOperands& operands) const {
  Block block;
  const bool keeps_b = block_k_ >= sizes_.k && part.block_n >= part.n.length();
  for (std::ptrdiff_t i = part.m.begin; i < part.m.end; i += part.block_m) {
    block.m = {i, std::min(i + part.block_m, part.m.end)};
    for (std::ptrdiff_t p = 0; p < sizes_.k; p += block_k_) {
      block.k = {p, std::min(p + block_k_, sizes_.k)};
      pack_a(part, operands, block.m, block.k);
      for (std::ptrdiff_t j = part.n.begin; j < part.n.end; j += part.block_n) {
        block.n = {j, std::min(j + part.block_n, part.n.end)};
        if (!keeps_b || i == part.m.begin) {
          pack_b(part, operands, block.n, block.k);
        }
        multiply_block<false>(part, operands, block);
      }
    }
  }
}

template <bool kRowsFastest>
void BlockedGemm::multiply_block(const Part& part, const GemmOperands& operands,
                                 const Block& block) const {
  const std::ptrdiff_t mr = config_.mr;
  const std::ptrdiff_t nr = config_.nr;
  const std::ptrdiff_t lanes = kernels_->lanes;
  const std::ptrdiff_t rows = block.m.length();
  const std::ptrdiff_t columns = block.n.length();
  const std::ptrdiff_t depth = block.k.length();
  const bool is_first = block.k.begin == 0;

  const float* a = config_.pack_a ? part.packed_a.data()
                                  : operands.a + block.m.begin * operands.a_stride + block.k.begin;
  const float* b = config_.pack_b ? part.packed_b.data()
                                  : operands.b + block.k.begin * operands.b_stride + block.n.begin;
  const std::ptrdiff_t a_step = config_.pack_a ? depth : operands.a_stride;
  float* c = operands.c + block.m.begin * operands.c_stride + block.n.begin;
  // Later blocks of depth add to what the first one wrote.
  const bool reads_operand = is_first && operands.beta != 0.0F;
  const float* c_in =
      reads_operand ? operands.c_in + block.m.begin * operands.c_in_stride + block.n.begin : c;

  MicroKernelCall call;
  call.a_row_stride = operands.a_stride;
  call.c_in_stride = reads_operand ? operands.c_in_stride : operands.c_stride;
  call.c_stride = operands.c_stride;
  call.k = depth;
  call.alpha = operands.alpha;
  call.beta = is_first ? operands.beta : 1.0F;
  call.last_columns = part.edge_last_columns;

  const auto multiply_tile = [&](std::ptrdiff_t i, std::ptrdiff_t j) {
    const bool lower = rows - i < mr;
    const bool right = columns - j < nr;
    call.a = a + i * a_step;
    if (config_.pack_b) {
      const std::ptrdiff_t width = right ? (columns - j + lanes - 1) / lanes * lanes : nr;
      call.b = b + j * depth;
      call.b_stride = width;
    } else {
      call.b = b + j;
      call.b_stride = operands.b_stride;
    }
    call.c = c + i * call.c_stride + j;
    call.c_in = c_in + i * call.c_in_stride + j;
    part.kernels[lower ? 1 : 0][right ? 1 : 0](call);
  };
  if constexpr (kRowsFastest) {
    for (std::ptrdiff_t j = 0; j < columns; j += nr) {
      for (std::ptrdiff_t i = 0; i < rows; i += mr) {
        multiply_tile(i, j);
      }
    }
  } else {
    for (std::ptrdiff_t i = 0; i < rows; i += mr) {
      for (std::ptrdiff_t j = 0; j < columns; j += nr) {
        multiply_tile(i, j);
      }
    }
  }
}

}  // namespace foretune
