// The blocked matrix product behind the cpu-gemm family: loops over cache blocks, packing where the
// config asks for it, a micro-kernel per register block. The structure is that of Goto and van de
// Geijn (2008) and BLIS (Van Zee and van de Geijn 2015); configs choose packing and loop order.
//
//   FORETUNE_TRY(const BlockedGemm gemm, BlockedGemm::create({.m = 64, .n = 64, .k = 64}, config,
//                                                            pool));
//   FORETUNE_TRY(AlignedBuffer workspace, gemm.make_workspace());
//   gemm.run({.a = a, .a_stride = 64, .b = b, .b_stride = 64, .c = c, .c_stride = 64},
//            workspace.view());
//
// Thread safety: several threads may call run() at once, each with a workspace of its own; but a
// gemm with several threads uses the pool, which serves one call at a time. Cost: run() neither
// allocates nor locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/packing.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune {

struct BlockedGemmSizes {
  std::ptrdiff_t m = 1;
  std::ptrdiff_t n = 1;
  std::ptrdiff_t k = 1;
  std::ptrdiff_t batch = 1;
  // How A and B are stored: row-major, or by columns. C is row-major.
  bool a_by_columns = false;
  bool b_by_columns = false;
  // The type of A and B: kF32, kBf16 (C is f32) or kI8 (C is i32).
  DataType dtype = DataType::kF32;
  // True when B is the same in many calls: where the config packs B, pack_weights() does so once,
  // and run() takes the result.
  bool constant_b = false;
};

// C = max(floor, alpha * A * B + beta * C_in) for each product of the batch. Strides are in
// elements, between rows or, for an operand stored by columns, between columns. C_in is not read
// when beta is 0. For C += set c_in = c; for a bias set c_in_stride = 0 and beta = 1; for a ReLU
// set floor = 0. Products of integers are exact modulo 2^32; their alpha must be 1, beta 0 or 1,
// and the floor is not applied.
template <class Element, class Sum>
struct BasicGemmOperands {
  const Element* a = nullptr;
  std::ptrdiff_t a_stride = 0;
  std::ptrdiff_t a_batch_stride = 0;
  const Element* b = nullptr;
  std::ptrdiff_t b_stride = 0;
  std::ptrdiff_t b_batch_stride = 0;
  const Sum* c_in = nullptr;
  std::ptrdiff_t c_in_stride = 0;
  std::ptrdiff_t c_in_batch_stride = 0;
  Sum* c = nullptr;
  std::ptrdiff_t c_stride = 0;
  std::ptrdiff_t c_batch_stride = 0;
  float alpha = 1;
  float beta = 0;
  float floor = -std::numeric_limits<float>::infinity();
};
using GemmOperands = BasicGemmOperands<float, float>;
using Bf16GemmOperands = BasicGemmOperands<Bf16, float>;
using I8GemmOperands = BasicGemmOperands<std::int8_t, std::int32_t>;

// Returns the size of a part when `length` is cut into ceil(length / bound) parts of nearly equal
// size, a multiple of `unit`; the last part may be smaller.
constexpr std::ptrdiff_t balanced_block(std::ptrdiff_t length, std::ptrdiff_t bound,
                                        std::ptrdiff_t unit) {
  const std::ptrdiff_t parts = (length + bound - 1) / bound;
  if (parts == 0) {
    return unit;
  }
  const std::ptrdiff_t part = (length + parts - 1) / parts;
  return (part + unit - 1) / unit * unit;
}

// Returns the rows of the grid of threads that share an m x n matrix: nearly as many as columns,
// and where the two differ, more along the longer side.
constexpr std::ptrdiff_t gemm_grid_rows(std::ptrdiff_t m, std::ptrdiff_t n,
                                        std::ptrdiff_t threads) {
  std::ptrdiff_t fewer = 1;
  for (std::ptrdiff_t divisor = 2; divisor * divisor <= threads; ++divisor) {
    if (threads % divisor == 0) {
      fewer = divisor;
    }
  }
  return m > n ? threads / fewer : fewer;
}

class BlockedGemm {
 public:
  // Returns true when there are kernels for products of such elements.
  static constexpr bool multiplies(DataType dtype) {
    return dtype == DataType::kF32 || dtype == DataType::kBf16 || dtype == DataType::kI8;
  }
  // The most columns of a B stored by rows that are copied for dot kernels.
  static constexpr std::ptrdiff_t kMaxGathered = 8;
  // `pool` may be null for one thread; else it must have at least config.threads threads and
  // outlive this object. Errors: kUnsupported when the kernels cannot run here or the data type is
  // none of the three, kInvalidArgument when there is no such register block, the pool is too
  // small, B is stored by columns and not packed, another type than f32 is not packed, or threads
  // are to share the depth of a batch or of integers.
  static Result<BlockedGemm> create(const BlockedGemmSizes& sizes, const CpuGemmConfig& config,
                                    ThreadPool* pool);
  // Returns the size of the workspace of run(), in floats, aligned to AlignedBuffer::kAlignment.
  [[nodiscard]] std::size_t workspace_size() const { return workspace_size_; }
  // Errors: kUnsupported when memory is short.
  [[nodiscard]] Result<AlignedBuffer> make_workspace() const {
    return AlignedBuffer::create(workspace_size_);
  }
  // Returns how many floats pack_weights() writes, aligned as the workspace; 0 where it has nothing
  // to do.
  [[nodiscard]] std::size_t weights_size() const { return weights_size_; }
  // Packs the whole of B, with the config's threads. Reads no operand but B. The operands' types
  // must be those of `sizes.dtype`.
  void pack_weights(const GemmOperands& operands, std::span<float> weights) const;
  void pack_weights(const Bf16GemmOperands& operands, std::span<float> weights) const;
  void pack_weights(const I8GemmOperands& operands, std::span<float> weights) const;
  // Computes the products. The operands' types must be those of `sizes.dtype`. `weights` is the
  // output of pack_weights(); B itself is then read only where the config does not pack it.
  void run(const GemmOperands& operands, std::span<float> workspace,
           std::span<float> weights = {}) const;
  void run(const Bf16GemmOperands& operands, std::span<float> workspace,
           std::span<float> weights = {}) const;
  void run(const I8GemmOperands& operands, std::span<float> workspace,
           std::span<float> weights = {}) const;

 private:
  struct Range {
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
    [[nodiscard]] std::ptrdiff_t length() const { return end - begin; }
  };
  // The work of one thread.
  struct Part {
    Range batch;
    Range m;
    Range n;
    Range k;
    // Positions in the workspace.
    std::size_t packed_a = 0;
    std::size_t packed_b = 0;
    // Position among the packed weights; parts of the same columns and depth share them.
    std::size_t weights = 0;
    bool packs_weights = false;
    // Position of the sums, m * n values, when threads share the depth; the first thread has none.
    std::size_t partial = 0;
    std::size_t columns = 0;  // position of the gathered ones
    // Columns right of `n` that dot kernels compute.
    std::ptrdiff_t edge_columns = 0;
    // [lower edge][right edge]
    std::array<std::array<MicroKernel, 2>, 2> kernels{};
    int edge_last_columns = 0;  // of the last vector of a block at the right edge
    std::ptrdiff_t block_m = 0;
    std::ptrdiff_t block_n = 0;
    std::ptrdiff_t block_k = 0;
  };
  // One cache block, in coordinates of the whole matrix.
  struct Block {
    Range m;
    Range n;
    Range k;
  };
  // One call of run(). Operands of other types are passed as pointers to float: offset() alone
  // moves pointers to A and B, and C has 32 bits in every type.
  struct Call {
    const BlockedGemm& gemm;
    GemmOperands operands;
    float* workspace;
    // The columns of B that dot kernels read for the right edge, from depth 0.
    const float* edge_b = nullptr;
    std::ptrdiff_t edge_b_stride = 0;
    float* weights = nullptr;    // packed once
    std::ptrdiff_t product = 0;  // its index in the part's share of the batch
  };

  BlockedGemm() = default;
  void add_part(const Range& batch, const Range& m, const Range& n, const Range& k);
  std::size_t reserve(std::ptrdiff_t floats);
  template <class Operands>
  [[nodiscard]] Call call_of(const Operands& operands, std::span<float> workspace,
                             std::span<float> weights) const;
  void run(const Call& call) const;
  void pack_weights(const Call& call) const;
  void pack_weights(const Part& part, Call call) const;
  void place_weights(Part& part);
  [[nodiscard]] bool packs_once() const { return sizes_.constant_b && config_.pack_b; }
  // Returns the number of floats between the packed weights of two blocks.
  [[nodiscard]] std::size_t weights_step(const Part& part) const;
  [[nodiscard]] float* packed_b(const Part& part, const Call& call, const Range& n,
                                const Range& k) const;
  // Moves a pointer into A or B by `elements` elements.
  [[nodiscard]] const float* offset(const float* values, std::ptrdiff_t elements) const {
    return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(values) +
                                          elements * element_bytes_);
  }
  // Returns the address of element (row, column) of A or B.
  [[nodiscard]] const float* at(const float* values, std::ptrdiff_t stride, bool by_columns,
                                std::ptrdiff_t row, std::ptrdiff_t column) const {
    return offset(values, by_columns ? column * stride + row : row * stride + column);
  }
  [[nodiscard]] MicroKernel find_kernel(int rows, int columns) const;
  static std::vector<Range> cut(std::ptrdiff_t length, std::ptrdiff_t parts, std::ptrdiff_t unit);
  // Returns true when each thread sums only a part of the depth.
  [[nodiscard]] bool shares_depth() const { return parts_.back().k.begin > 0; }
  void run_part(const Part& part, const Call& call) const;
  // Returns true when columns of B may have to be copied for dot kernels.
  [[nodiscard]] bool gathers_columns() const {
    return config_.kernel == GemmKernel::kDot && !sizes_.b_by_columns;
  }
  // Returns the distance between gathered columns: whole cache lines, plus one, so that columns
  // whose length is a power of two do not compete for the same cache sets.
  [[nodiscard]] std::ptrdiff_t gathered_stride() const {
    constexpr std::ptrdiff_t kLineFloats = 16;
    return (sizes_.k + kLineFloats - 1) / kLineFloats * kLineFloats + kLineFloats;
  }
  [[nodiscard]] std::ptrdiff_t count_edge_columns() const;
  void add_partials(std::size_t part, const Call& call) const;
  void gather_columns(const Part& part, Call& call) const;
  const float* copy_columns(const Part& part, const Call& call, const Range& n) const;
  void run_loops(const Part& part, const Call& call) const;
  void run_nkm(const Part& part, const Call& call) const;
  void run_mkn(const Part& part, const Call& call) const;
  void pack_a(const Part& part, const Call& call, const Range& m, const Range& k) const;
  void pack_b(const Part& part, const Call& call, const Range& n, const Range& k) const;
  void pack_block_of_b(const Call& call, const Range& n, const Range& k, float* packed) const;
  template <bool kRowsFastest>
  void multiply_block(const Part& part, const Call& call, const Block& block) const;
  void multiply_edge(const Part& part, const Call& of_run, const Block& block,
                     MicroKernelCall call) const;

  BlockedGemmSizes sizes_;
  CpuGemmConfig config_;
  const KernelSet* kernels_ = nullptr;
  PackedWords words_ = PackedWords::kF32;
  TransposePanel transpose_ = nullptr;
  std::ptrdiff_t element_bytes_ = 4;
  std::size_t workspace_size_ = 0;
  std::size_t weights_size_ = 0;
  std::vector<Part> parts_;
  ThreadPool* pool_ = nullptr;
  std::ptrdiff_t edge_columns_ = 0;  // beyond whole vectors, for dot kernels
};

}  // namespace foretune
