#include "foretune/families/cpu_gemm/blocked_gemm.h"

#include <algorithm>

#include "foretune/base/check.h"
#include "foretune/kernels/packing.h"

namespace foretune {
namespace {

// Depth blocks start at multiples of this, so that rows of A are cut at even places.
constexpr std::ptrdiff_t kDepthUnit = 8;
// Rows of A of so few floats are over before the hardware has noticed that they are read.
constexpr std::ptrdiff_t kFetchedDepth = 64;
// Products of fewer steps are over before a line of C could come.
constexpr std::ptrdiff_t kPrefetchDepth = 32;

// What the kernels of an instruction set multiply for a data type.
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
      break;
  }
  return dtype == DataType::kBf16 ? PackedWords::kBf16AsF32 : PackedWords::kF32;
}

// Asks for rows before they are read. A hint never faults, so rows behind the last need no
// exception.
void fetch_rows(const float* rows, std::ptrdiff_t count, std::ptrdiff_t length,
                std::ptrdiff_t stride) {
  constexpr std::ptrdiff_t kLineFloats = 16;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    for (std::ptrdiff_t at = 0; at < length; at += kLineFloats) {
      __builtin_prefetch(rows + i * stride + at, 0, 3);
    }
  }
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
  if (config_.pack_b) {
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

namespace {

// Pointers of other types as words, which only packing looks into.
template <class Element, class Sum>
GemmOperands as_words(const BasicGemmOperands<Element, Sum>& operands) {
  return {.a = reinterpret_cast<const float*>(operands.a),
          .a_stride = operands.a_stride,
          .a_batch_stride = operands.a_batch_stride,
          .b = reinterpret_cast<const float*>(operands.b),
          .b_stride = operands.b_stride,
          .b_batch_stride = operands.b_batch_stride,
          .c_in = reinterpret_cast<const float*>(operands.c_in),
          .c_in_stride = operands.c_in_stride,
          .c_in_batch_stride = operands.c_in_batch_stride,
          .c = reinterpret_cast<float*>(operands.c),
          .c_stride = operands.c_stride,
          .c_batch_stride = operands.c_batch_stride,
          .alpha = operands.alpha,
          .beta = operands.beta,
          .floor = operands.floor};
}

}  // namespace

void BlockedGemm::run(const GemmOperands& operands, std::span<float> workspace) const {
  FORETUNE_CHECK(sizes_.dtype == DataType::kF32 && workspace.size() >= workspace_size_);
  run(Call{*this, operands, workspace.data()});
}

void BlockedGemm::run(const Bf16GemmOperands& operands, std::span<float> workspace) const {
  FORETUNE_CHECK(sizes_.dtype == DataType::kBf16 && workspace.size() >= workspace_size_);
  run(Call{*this, as_words(operands), workspace.data()});
}

void BlockedGemm::run(const I8GemmOperands& operands, std::span<float> workspace) const {
  FORETUNE_CHECK(sizes_.dtype == DataType::kI8 && workspace.size() >= workspace_size_);
  run(Call{*this, as_words(operands), workspace.data()});
}

void BlockedGemm::run(const Call& call) const {
  if (parts_.size() == 1) {
    run_part(parts_.front(), call);
    return;
  }
  // One pointer: small enough for std::function to hold without allocating.
  pool_->run(parts_.size(),
             [&call](std::size_t i) { call.gemm.run_part(call.gemm.parts_[i], call); });
  if (shares_depth()) {
    pool_->run(parts_.size(), [&call](std::size_t i) { call.gemm.add_partials(i, call); });
  }
}

// Adds a part's share of the rows up.
void BlockedGemm::add_partials(std::size_t part, const Call& call) const {
  const GemmOperands& operands = call.operands;
  const auto parts = static_cast<std::ptrdiff_t>(parts_.size());
  const auto index = static_cast<std::ptrdiff_t>(part);
  for (std::ptrdiff_t i = sizes_.m * index / parts; i < sizes_.m * (index + 1) / parts; ++i) {
    float* const row = operands.c + i * operands.c_stride;
    for (std::size_t other = 1; other < parts_.size(); ++other) {
      const float* const partial = call.workspace + parts_[other].partial + i * sizes_.n;
      for (std::ptrdiff_t j = 0; j < sizes_.n; ++j) {
        row[j] += partial[j];
      }
    }
    for (std::ptrdiff_t j = 0; j < sizes_.n; ++j) {
      row[j] = row[j] < operands.floor ? operands.floor : row[j];
    }
  }
}

void BlockedGemm::run_part(const Part& part, const Call& call) const {
  // Copies of the operands would show in a product that is over in 100 ns.
  if (sizes_.batch == 1 && !shares_depth() && part.edge_columns == 0 && !gathers_columns()) {
    run_loops(part, call);
    return;
  }
  Call mine = call;
  GemmOperands& here = mine.operands;
  const GemmOperands& operands = call.operands;
  if (shares_depth()) {  // the sum is not complete before all parts are
    here.floor = -std::numeric_limits<float>::infinity();
  }
  if (part.k.begin > 0) {
    here.c = call.workspace + part.partial;
    here.c_stride = sizes_.n;
    here.beta = 0;
    here.c_in = nullptr;
  }
  const auto advance = [&](std::ptrdiff_t products) {
    here.a = offset(here.a, products * operands.a_batch_stride);
    here.b = offset(here.b, products * operands.b_batch_stride);
    here.c += products * operands.c_batch_stride;
    if (here.c_in != nullptr) {
      here.c_in += products * operands.c_in_batch_stride;
    }
  };
  advance(part.batch.begin);
  for (std::ptrdiff_t i = part.batch.begin; i < part.batch.end; ++i) {
    Call gathered = mine;
    gather_columns(part, gathered);
    run_loops(part, gathered);
    advance(1);
  }
}

// Dot kernels read along columns of B: where B is stored by rows, copies of the few that they take.
void BlockedGemm::gather_columns(const Part& part, Call& call) const {
  GemmOperands& operands = call.operands;
  if (part.edge_columns > 0) {
    const std::ptrdiff_t first = sizes_.n - part.edge_columns;
    call.edge_b = sizes_.b_by_columns
                      ? operands.b + first * operands.b_stride
                      : copy_columns(part, call, {first, first + part.edge_columns});
    call.edge_b_stride = sizes_.b_by_columns ? operands.b_stride : gathered_stride();
  }
  // A single column may lie as if it were one already.
  if (gathers_columns() && !(sizes_.n == 1 && operands.b_stride == 1)) {
    operands.b = copy_columns(part, call, part.n) - part.n.begin * gathered_stride();
    operands.b_stride = gathered_stride();
  }
}

// The part's depth of some columns of B, where element (p, j) lies at p + (j - n.begin) * stride.
const float* BlockedGemm::copy_columns(const Part& part, const Call& call, const Range& n) const {
  float* const columns = call.workspace + part.columns;
  const GemmOperands& operands = call.operands;
  for (std::ptrdiff_t p = part.k.begin; p < part.k.end; ++p) {
    const float* const row = operands.b + p * operands.b_stride + n.begin;
    for (std::ptrdiff_t j = 0; j < n.length(); ++j) {
      columns[p + j * gathered_stride()] = row[j];
    }
  }
  return columns;
}

// Columns beyond whole vectors that dot kernels compute: a vector of which one lane in five or
// fewer counts would take as long as a full one.
std::ptrdiff_t BlockedGemm::count_edge_columns() const {
  const std::ptrdiff_t lanes = kernels_->lanes;
  const std::ptrdiff_t over = sizes_.n % lanes;
  const bool pays = 5 * over <= lanes && sizes_.n > lanes && sizes_.k >= 4 * lanes;
  return pays && config_.kernel == GemmKernel::kOuter && sizes_.dtype == DataType::kF32 &&
                 !sizes_.a_by_columns
             ? over
             : 0;
}

void BlockedGemm::run_loops(const Part& part, const Call& call) const {
  if (config_.order == GemmLoopOrder::kNkm) {
    run_nkm(part, call);
  } else {
    run_mkn(part, call);
  }
}

void BlockedGemm::pack_a(const Part& part, const Call& call, const Range& m, const Range& k) const {
  const GemmOperands& operands = call.operands;
  if (config_.pack_a) {
    pack_a_panels(
        words_,
        {.values = at(operands.a, operands.a_stride, sizes_.a_by_columns, m.begin, k.begin),
         .stride = operands.a_stride,
         .by_columns = sizes_.a_by_columns},
        m.length(), k.length(), config_.mr, call.workspace + part.packed_a, transpose_);
  }
}

void BlockedGemm::pack_b(const Part& part, const Call& call, const Range& n, const Range& k) const {
  const GemmOperands& operands = call.operands;
  if (config_.pack_b) {
    pack_b_panels(
        words_,
        {.values = at(operands.b, operands.b_stride, sizes_.b_by_columns, k.begin, n.begin),
         .stride = operands.b_stride,
         .by_columns = sizes_.b_by_columns},
        k.length(), n.length(), config_.nr, kernels_->lanes, call.workspace + part.packed_b,
        transpose_);
  }
}

void BlockedGemm::run_nkm(const Part& part, const Call& call) const {
  Block block;
  // With one block of depth and of rows, the packed block of A stays what it is.
  const bool keeps_a = part.block_k >= part.k.length() && part.block_m >= part.m.length();
  for (std::ptrdiff_t j = part.n.begin; j < part.n.end; j += part.block_n) {
    block.n = {j, std::min(j + part.block_n, part.n.end)};
    for (std::ptrdiff_t p = part.k.begin; p < part.k.end; p += part.block_k) {
      block.k = {p, std::min(p + part.block_k, part.k.end)};
      pack_b(part, call, block.n, block.k);
      for (std::ptrdiff_t i = part.m.begin; i < part.m.end; i += part.block_m) {
        block.m = {i, std::min(i + part.block_m, part.m.end)};
        if (!keeps_a || j == part.n.begin) {
          pack_a(part, call, block.m, block.k);
        }
        multiply_block<true>(part, call, block);
      }
    }
  }
}

void BlockedGemm::run_mkn(const Part& part, const Call& call) const {
  Block block;
  const bool keeps_b = part.block_k >= part.k.length() && part.block_n >= part.n.length();
  for (std::ptrdiff_t i = part.m.begin; i < part.m.end; i += part.block_m) {
    block.m = {i, std::min(i + part.block_m, part.m.end)};
    for (std::ptrdiff_t p = part.k.begin; p < part.k.end; p += part.block_k) {
      block.k = {p, std::min(p + part.block_k, part.k.end)};
      pack_a(part, call, block.m, block.k);
      for (std::ptrdiff_t j = part.n.begin; j < part.n.end; j += part.block_n) {
        block.n = {j, std::min(j + part.block_n, part.n.end)};
        if (!keeps_b || i == part.m.begin) {
          pack_b(part, call, block.n, block.k);
        }
        multiply_block<false>(part, call, block);
      }
    }
  }
}

template <bool kRowsFastest>
void BlockedGemm::multiply_block(const Part& part, const Call& of_run, const Block& block) const {
  const GemmOperands& operands = of_run.operands;
  const std::ptrdiff_t mr = config_.mr;
  const std::ptrdiff_t nr = config_.nr;
  const std::ptrdiff_t lanes = kernels_->lanes;
  const std::ptrdiff_t rows = block.m.length();
  const std::ptrdiff_t columns = block.n.length();
  // In words, and of a packed panel of B with what comes before it.
  const std::ptrdiff_t depth = packed_depth(words_, block.k.length());
  const std::ptrdiff_t b_depth = depth + extra_rows(words_);
  const bool is_first = block.k.begin == part.k.begin;
  const bool is_last = block.k.end == part.k.end;

  const float* a = config_.pack_a ? of_run.workspace + part.packed_a
                                  : at(operands.a, operands.a_stride, sizes_.a_by_columns,
                                       block.m.begin, block.k.begin);
  const bool b_by_columns = config_.kernel == GemmKernel::kDot;  // unpacked
  const float* b = config_.pack_b ? of_run.workspace + part.packed_b
                                  : at(operands.b, operands.b_stride, b_by_columns, block.k.begin,
                                       block.n.begin);
  const std::ptrdiff_t b_step = b_by_columns ? operands.b_stride : 1;
  const std::ptrdiff_t a_step = config_.pack_a        ? depth
                                : sizes_.a_by_columns ? 1
                                                      : operands.a_stride;
  float* c = operands.c + block.m.begin * operands.c_stride + block.n.begin;
  // Later blocks of depth add to what the first one wrote.
  const bool reads_operand = is_first && operands.beta != 0.0F;
  const float* c_in =
      reads_operand ? operands.c_in + block.m.begin * operands.c_in_stride + block.n.begin : c;

  MicroKernelCall call;
  call.a_stride = operands.a_stride;
  call.c_in_stride = reads_operand ? operands.c_in_stride : operands.c_stride;
  call.c_stride = operands.c_stride;
  call.k = depth;
  call.alpha = operands.alpha;
  call.beta = is_first ? operands.beta : 1.0F;
  if (is_last) {
    call.floor = operands.floor;
  }
  call.last_columns = part.edge_last_columns;
  call.rows_ahead = config_.prefetch;
  call.prefetch_c = depth >= kPrefetchDepth;
  // With a single column of blocks every row of A is read once.
  const bool reads_a_once = !config_.pack_a && !sizes_.a_by_columns && columns <= nr;
  call.prefetch_a = reads_a_once && config_.kernel == GemmKernel::kDot;
  const bool fetches_next_a =
      reads_a_once && config_.kernel == GemmKernel::kOuter && depth <= kFetchedDepth;

  const auto multiply_tile = [&](std::ptrdiff_t i, std::ptrdiff_t j) {
    const bool lower = rows - i < mr;
    const bool right = columns - j < nr;
    call.a = a + i * a_step;
    if (config_.pack_a) {
      call.a_stride = lower ? rows - i : mr;
    }
    if (config_.pack_b) {
      const std::ptrdiff_t width = right ? (columns - j + lanes - 1) / lanes * lanes : nr;
      call.b = b + j * b_depth;
      call.b_stride = width;
    } else {
      call.b = b + j * b_step;
      call.b_stride = operands.b_stride;
    }
    call.c = c + i * call.c_stride + j;
    call.c_in = c_in + i * call.c_in_stride + j;
    if (fetches_next_a) {
      fetch_rows(call.a + mr * a_step, mr, depth, call.a_stride);
    }
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
  if (part.edge_columns > 0 && block.n.end == part.n.end) {
    call.c = c + columns;
    call.c_in = c_in + columns;
    multiply_edge(part, of_run, block, call);
  }
}

// The columns beyond whole vectors, of a block whose rows of A have just been read.
void BlockedGemm::multiply_edge(const Part& part, const Call& of_run, const Block& block,
                                MicroKernelCall call) const {
  const int columns = static_cast<int>(part.edge_columns);
  const std::ptrdiff_t high = max_dot_rows(config_.isa, columns);
  call.a_stride = of_run.operands.a_stride;
  call.b = of_run.edge_b + block.k.begin;
  call.b_stride = of_run.edge_b_stride;
  for (std::ptrdiff_t i = block.m.begin; i < block.m.end; i += high) {
    const std::ptrdiff_t rows = std::min(high, block.m.end - i);
    call.a = at(of_run.operands.a, call.a_stride, false, i, block.k.begin);
    kernels_->find_dot(static_cast<int>(rows), columns)(call);
    call.c += rows * call.c_stride;
    call.c_in += rows * call.c_in_stride;
  }
}

}  // namespace foretune
