// How a product is cut into blocks, and what each thread does: made once, before any run.
#include <algorithm>

#include "foretune/base/check.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/kernels/packing.h"

namespace foretune {
namespace {

// Depth blocks start at multiples of this, so that rows of A are cut at even places.
constexpr std::ptrdiff_t kDepthUnit = 8;

// Returns how the kernels of an instruction set multiply a data type.
KernelMath math_of(DataType dtype, CpuIsa isa) {
  switch (dtype) {
    case DataType::kBf16:
      return kernel_set(isa, KernelMath::kBf16Pairs) != nullptr ? KernelMath::kBf16Pairs
                                                                : KernelMath::kF32;
    case DataType::kI8:
      return kernel_set(isa, KernelMath::kI8Quads) != nullptr ? KernelMath::kI8Quads
                                                              : KernelMath::kI16Pairs;
    default:
      return KernelMath::kF32;
  }
}

PackedWords words_of(DataType dtype, KernelMath math) {
  switch (math) {
    case KernelMath::kBf16Pairs:
      return PackedWords::kBf16Pairs;
    case KernelMath::kI8Quads:
      return PackedWords::kI8Quads;
    case KernelMath::kI16Pairs:
      return PackedWords::kI8AsI16Pairs;
    case KernelMath::kF32:
    case KernelMath::kI8Shifted:  // only of convolutions
    case KernelMath::kI8Tiles:
    case KernelMath::kBf16Tiles:
      break;
  }
  return dtype == DataType::kBf16 ? PackedWords::kBf16AsF32 : PackedWords::kF32;
}

Status check(const BlockedGemmSizes& sizes, const CpuGemmConfig& config, const ThreadPool* pool) {
  if (sizes.m < 1 || sizes.n < 1 || sizes.k < 1 || sizes.batch < 1) {
    return fail(ErrorCode::kInvalidArgument, "sizes must be at least 1");
  }
  if (const Support support = kernel_set_support(config.isa); !support) {
    return fail(ErrorCode::kUnsupported, support.reason());
  }
  if (!BlockedGemm::multiplies(sizes.dtype)) {
    return fail(ErrorCode::kUnsupported, "there are no kernels for ", to_string(sizes.dtype));
  }
  const KernelSet& kernels = *kernel_set(config.isa);
  const bool is_dot = config.kernel == GemmKernel::kDot;
  const bool has_kernel =
      is_dot
          ? kernels.find_dot(config.mr, config.nr) != nullptr
          : config.nr % kernels.lanes == 0 &&
                kernels.find({.rows = config.mr, .vectors = config.nr / kernels.lanes}) != nullptr;
  if (!has_kernel) {
    return fail(ErrorCode::kInvalidArgument, "there is no ", to_string(config.isa),
                is_dot ? " dot" : "", " kernel for blocks of ", config.mr, " x ", config.nr);
  }
  if (is_dot &&
      (sizes.a_by_columns || !(sizes.b_by_columns || sizes.n <= BlockedGemm::kMaxGathered) ||
       config.pack_a || config.pack_b)) {
    return fail(ErrorCode::kInvalidArgument, "dot kernels take A stored by rows and B by columns ",
                "or with at most ", BlockedGemm::kMaxGathered, " of them, both unpacked");
  }
  if (sizes.dtype != DataType::kF32 && !(config.pack_a && config.pack_b)) {
    return fail(ErrorCode::kInvalidArgument, "operands that are not f32 must be packed");
  }
  if (config.threads > 1 && config.split == GemmSplit::kK && sizes.dtype == DataType::kI8) {
    return fail(ErrorCode::kInvalidArgument, "threads cannot share the depth of integers");
  }
  if (!is_dot && sizes.b_by_columns && !config.pack_b) {
    return fail(ErrorCode::kInvalidArgument, "B stored by columns must be packed");
  }
  if (config.threads > 1 && config.split == GemmSplit::kK && sizes.batch > 1) {
    return fail(ErrorCode::kInvalidArgument, "threads cannot share the depth of a batch");
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
  const KernelMath math = math_of(sizes.dtype, config.isa);
  gemm.kernels_ = kernel_set(config.isa, math);
  gemm.words_ = words_of(sizes.dtype, math);
  gemm.transpose_ = transpose_panel_of(config.isa);
  gemm.element_bytes_ = static_cast<std::ptrdiff_t>(bytes_per_element(sizes.dtype));
  gemm.pool_ = pool;
  gemm.edge_columns_ = gemm.count_edge_columns();

  // Among how many threads each dimension is shared.
  std::ptrdiff_t batch_parts = 1;
  std::ptrdiff_t m_parts = 1;
  std::ptrdiff_t n_parts = 1;
  std::ptrdiff_t k_parts = 1;
  switch (config.split) {
    case GemmSplit::kM:
      m_parts = config.threads;
      break;
    case GemmSplit::kN:
      n_parts = config.threads;
      break;
    case GemmSplit::kBatch:
      batch_parts = config.threads;
      break;
    case GemmSplit::kGrid:
      m_parts = gemm_grid_rows(sizes.m, sizes.n, config.threads);
      n_parts = config.threads / m_parts;
      break;
    case GemmSplit::kK:
      k_parts = config.threads;
      break;
  }
  for (const Range& batch : cut(sizes.batch, batch_parts, 1)) {
    for (const Range& m : cut(sizes.m, m_parts, config.mr)) {
      for (const Range& n : cut(sizes.n - gemm.edge_columns_, n_parts, config.nr)) {
        for (const Range& k : cut(sizes.k, k_parts, kDepthUnit)) {
          gemm.add_part(batch, m, n, k);
        }
      }
    }
  }
  return gemm;
}

// At most `parts` ranges of nearly equal length, multiples of `unit` but for the last.
std::vector<BlockedGemm::Range> BlockedGemm::cut(std::ptrdiff_t length, std::ptrdiff_t parts,
                                                 std::ptrdiff_t unit) {
  const std::ptrdiff_t step = balanced_block(length, (length + parts - 1) / parts, unit);
  std::vector<Range> ranges;
  for (std::ptrdiff_t begin = 0; begin < length; begin += step) {
    ranges.push_back({begin, std::min(begin + step, length)});
  }
  return ranges;
}

// Begins at a cache line, and pages of their own keep two buffers from competing for a set.
std::size_t BlockedGemm::reserve(std::ptrdiff_t floats) {
  constexpr std::size_t kPageFloats = 1024;
  const std::size_t begin = workspace_size_;
  workspace_size_ +=
      (static_cast<std::size_t>(floats) + kPageFloats - 1) / kPageFloats * kPageFloats;
  return begin;
}

void BlockedGemm::add_part(const Range& batch, const Range& m, const Range& n, const Range& k) {
  const std::ptrdiff_t mr = config_.mr;
  const std::ptrdiff_t nr = config_.nr;
  const int lanes = kernels_->lanes;
  Part part;
  part.batch = batch;
  part.m = m;
  part.n = n;
  part.k = k;
  part.block_m = std::min(m.length(), balanced_block(m.length(), config_.mc, mr));
  part.block_n = std::min(n.length(), balanced_block(n.length(), config_.nc, nr));
  part.block_k = std::min(k.length(), balanced_block(k.length(), config_.kc, kDepthUnit));
  part.edge_last_columns = static_cast<int>((n.length() % nr - 1) % lanes) + 1;
  for (const bool lower : {false, true}) {
    for (const bool right : {false, true}) {
      const std::ptrdiff_t rows = lower ? m.length() % mr : mr;
      const std::ptrdiff_t columns = right ? n.length() % nr : nr;
      if (rows > 0 && columns > 0) {
        part.kernels[lower ? 1 : 0][right ? 1 : 0] =
            find_kernel(static_cast<int>(rows), static_cast<int>(columns));
      }
    }
  }
  if (config_.pack_a) {
    part.packed_a = reserve(packed_a_size(words_, part.block_m, part.block_k));
  }
  if (packs_once()) {
    place_weights(part);
  } else if (config_.pack_b) {
    part.packed_b = reserve(packed_b_size(words_, part.block_k, part.block_n, lanes));
  }
  part.edge_columns = n.end + edge_columns_ == sizes_.n ? edge_columns_ : 0;
  const std::ptrdiff_t gathered = gathers_columns() ? n.length() : part.edge_columns;
  if (!sizes_.b_by_columns && gathered > 0) {
    part.columns = reserve(gathered * gathered_stride());
  }
  if (k.begin > 0) {
    part.partial = reserve(sizes_.m * sizes_.n);
  }
  parts_.push_back(part);
}

std::size_t BlockedGemm::weights_step(const Part& part) const {
  constexpr std::size_t kLineFloats = 16;
  const auto size =
      static_cast<std::size_t>(packed_b_size(words_, part.block_k, part.block_n, kernels_->lanes));
  return (size + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// Gives the part its place among the packed weights: that of an earlier one which reads the same.
void BlockedGemm::place_weights(Part& part) {
  const auto same = std::find_if(parts_.begin(), parts_.end(), [&](const Part& other) {
    return other.batch.begin == part.batch.begin && other.n.begin == part.n.begin &&
           other.k.begin == part.k.begin;
  });
  if (same != parts_.end()) {
    part.weights = same->weights;
    return;
  }
  const auto blocks = [](const Range& range, std::ptrdiff_t block) {
    return static_cast<std::size_t>((range.length() + block - 1) / block);
  };
  part.packs_weights = true;
  part.weights = weights_size_;
  weights_size_ += static_cast<std::size_t>(part.batch.length()) * blocks(part.n, part.block_n) *
                   blocks(part.k, part.block_k) * weights_step(part);
}

MicroKernel BlockedGemm::find_kernel(int rows, int columns) const {
  if (config_.kernel == GemmKernel::kDot) {
    return kernels_->find_dot(rows, columns);
  }
  const int lanes = kernels_->lanes;
  return kernels_->find({.rows = rows,
                         .vectors = (columns + lanes - 1) / lanes,
                         .a_by_columns = config_.pack_a || sizes_.a_by_columns,
                         .tail = columns % lanes != 0,
                         .loop = kernels_->math != KernelMath::kF32 ? KernelLoop::kPlain
                                 : config_.prefetch > 0             ? KernelLoop::kPrefetching
                                 : config_.unroll > 1               ? KernelLoop::kUnrolled
                                                                    : KernelLoop::kPlain});
}

}  // namespace foretune
