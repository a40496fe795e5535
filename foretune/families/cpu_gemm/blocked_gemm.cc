#include "foretune/families/cpu_gemm/blocked_gemm.h"

#include <algorithm>

#include "foretune/base/check.h"
#include "foretune/kernels/packing.h"

namespace foretune {
namespace {

// Rows of A of so few floats are over before the hardware has noticed that they are read.
constexpr std::ptrdiff_t kFetchedDepth = 64;
// Products of fewer steps are over before a line of C could come.
constexpr std::ptrdiff_t kPrefetchDepth = 32;

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

GemmOperands as_words(const GemmOperands& operands) { return operands; }

constexpr DataType type_of(const float* /*element*/) { return DataType::kF32; }
constexpr DataType type_of(const Bf16* /*element*/) { return DataType::kBf16; }
constexpr DataType type_of(const std::int8_t* /*element*/) { return DataType::kI8; }

}  // namespace

template <class Operands>
BlockedGemm::Call BlockedGemm::call_of(const Operands& operands, std::span<float> workspace,
                                       std::span<float> weights) const {
  FORETUNE_CHECK(sizes_.dtype == type_of(operands.a) && weights.size() >= weights_size_);
  return Call{.gemm = *this,
              .operands = as_words(operands),
              .workspace = workspace.data(),
              .weights = weights.data()};
}

void BlockedGemm::run(const GemmOperands& operands, std::span<float> workspace,
                      std::span<float> weights) const {
  FORETUNE_CHECK(workspace.size() >= workspace_size_);
  run(call_of(operands, workspace, weights));
}

void BlockedGemm::run(const Bf16GemmOperands& operands, std::span<float> workspace,
                      std::span<float> weights) const {
  FORETUNE_CHECK(workspace.size() >= workspace_size_);
  run(call_of(operands, workspace, weights));
}

void BlockedGemm::run(const I8GemmOperands& operands, std::span<float> workspace,
                      std::span<float> weights) const {
  FORETUNE_CHECK(workspace.size() >= workspace_size_);
  run(call_of(operands, workspace, weights));
}

void BlockedGemm::pack_weights(const GemmOperands& operands, std::span<float> weights) const {
  pack_weights(call_of(operands, {}, weights));
}

void BlockedGemm::pack_weights(const Bf16GemmOperands& operands, std::span<float> weights) const {
  pack_weights(call_of(operands, {}, weights));
}

void BlockedGemm::pack_weights(const I8GemmOperands& operands, std::span<float> weights) const {
  pack_weights(call_of(operands, {}, weights));
}

void BlockedGemm::pack_weights(const Call& call) const {
  if (!packs_once()) {
    return;
  }
  if (parts_.size() == 1) {
    pack_weights(parts_.front(), call);
    return;
  }
  pool_->run(parts_.size(),
             [&call](std::size_t i) { call.gemm.pack_weights(call.gemm.parts_[i], call); });
}

void BlockedGemm::pack_weights(const Part& part, Call call) const {
  if (!part.packs_weights) {
    return;
  }
  call.operands.b = offset(call.operands.b, part.batch.begin * call.operands.b_batch_stride);
  for (call.product = 0; call.product < part.batch.length(); ++call.product) {
    for (std::ptrdiff_t j = part.n.begin; j < part.n.end; j += part.block_n) {
      const Range n{j, std::min(j + part.block_n, part.n.end)};
      for (std::ptrdiff_t p = part.k.begin; p < part.k.end; p += part.block_k) {
        const Range k{p, std::min(p + part.block_k, part.k.end)};
        pack_block_of_b(call, n, k, packed_b(part, call, n, k));
      }
    }
    call.operands.b = offset(call.operands.b, call.operands.b_batch_stride);
  }
}

// Where the packed form of a block of B lies.
float* BlockedGemm::packed_b(const Part& part, const Call& call, const Range& n,
                             const Range& k) const {
  if (!packs_once()) {
    return call.workspace + part.packed_b;
  }
  const std::ptrdiff_t k_blocks = (part.k.length() + part.block_k - 1) / part.block_k;
  const std::ptrdiff_t n_blocks = (part.n.length() + part.block_n - 1) / part.block_n;
  const std::ptrdiff_t block =
      (call.product * n_blocks + (n.begin - part.n.begin) / part.block_n) * k_blocks +
      (k.begin - part.k.begin) / part.block_k;
  return call.weights + part.weights + static_cast<std::size_t>(block) * weights_step(part);
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
    gathered.product = i - part.batch.begin;
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
  if (config_.pack_b && !packs_once()) {
    pack_block_of_b(call, n, k, call.workspace + part.packed_b);
  }
}

void BlockedGemm::pack_block_of_b(const Call& call, const Range& n, const Range& k,
                                  float* packed) const {
  const GemmOperands& operands = call.operands;
  pack_b_panels(words_,
                {.values = at(operands.b, operands.b_stride, sizes_.b_by_columns, k.begin, n.begin),
                 .stride = operands.b_stride,
                 .by_columns = sizes_.b_by_columns},
                k.length(), n.length(), config_.nr, kernels_->lanes, packed, transpose_);
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
  const float* b = config_.pack_b ? packed_b(part, of_run, block.n, block.k)
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
