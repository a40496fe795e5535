// The blocked matrix product behind the cpu-gemm family: loops over cache blocks, packing where the
// config asks for it, a micro-kernel per register block. The structure is that of Goto and van de
// Geijn (2008) and BLIS (Van Zee and van de Geijn 2015), with packing and loop order left open.
//
//   FORETUNE_TRY(BlockedGemm gemm, BlockedGemm::create({.m = 64, .n = 64, .k = 64}, config, pool));
//   gemm.run({.a = a, .a_stride = 64, .b = b, .b_stride = 64, .c = c, .c_stride = 64});
//
// Thread safety: run() may be called by one thread at a time and uses the pool meanwhile.
// Cost: create() allocates the packing buffers; run() neither allocates nor locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_gemm/cpu_gemm_config.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {

struct BlockedGemmSizes {
  std::ptrdiff_t m = 1;
  std::ptrdiff_t n = 1;
  std::ptrdiff_t k = 1;
  std::ptrdiff_t batch = 1;
  // How A and B are stored: row-major, or by columns. C is row-major.
  bool a_by_columns = false;
  bool b_by_columns = false;
};

// C = max(floor, alpha * A * B + beta * C_in) for each of the batch; strides in elements, between
// rows or, of an operand stored by columns, between columns. C_in is not read when beta is 0. For
// C += set c_in = c; for a bias set c_in_stride = 0 and beta = 1; for a ReLU set floor = 0.
struct GemmOperands {
  const float* a = nullptr;
  std::ptrdiff_t a_stride = 0;
  std::ptrdiff_t a_batch_stride = 0;
  const float* b = nullptr;
  std::ptrdiff_t b_stride = 0;
  std::ptrdiff_t b_batch_stride = 0;
  const float* c_in = nullptr;
  std::ptrdiff_t c_in_stride = 0;
  std::ptrdiff_t c_in_batch_stride = 0;
  float* c = nullptr;
  std::ptrdiff_t c_stride = 0;
  std::ptrdiff_t c_batch_stride = 0;
  float alpha = 1;
  float beta = 0;
  float floor = -std::numeric_limits<float>::infinity();
};

// `length` cut into ceil(length / bound) parts of nearly equal size, a multiple of `unit`, the last
// one smaller: the size of a part.
constexpr std::ptrdiff_t balanced_block(std::ptrdiff_t length, std::ptrdiff_t bound,
                                        std::ptrdiff_t unit) {
  const std::ptrdiff_t parts = (length + bound - 1) / bound;
  if (parts == 0) {
    return unit;
  }
  const std::ptrdiff_t part = (length + parts - 1) / parts;
  return (part + unit - 1) / unit * unit;
}

// Rows of the grid of threads that share an m x n matrix: nearly as many as columns, and where the
// two differ, more along the longer side.
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
  // `pool` may be null for one thread; else it must have at least config.threads threads and
  // outlive this object. Errors: kUnsupported when the kernels cannot run here or memory is short,
  // kInvalidArgument when there is no such register block, the pool is too small, B is stored by
  // columns and not packed, or threads are to share the depth of a batch.
  static Result<BlockedGemm> create(const BlockedGemmSizes& sizes, const CpuGemmConfig& config,
                                    ThreadPool* pool);
  void run(const GemmOperands& operands);

 private:
  struct Range {
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
    [[nodiscard]] std::ptrdiff_t length() const { return end - begin; }
  };
  // What one thread does.
  struct Part {
    Range batch;
    Range m;
    Range n;
    Range k;
    AlignedBuffer packed_a;
    AlignedBuffer packed_b;
    // Threads that share the depth: what all but the first sum, m * n values.
    AlignedBuffer partial;
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

  BlockedGemm() = default;
  Status add_part(const Range& batch, const Range& m, const Range& n, const Range& k);
  [[nodiscard]] MicroKernel find_kernel(int rows, int columns) const;
  static std::vector<Range> cut(std::ptrdiff_t length, std::ptrdiff_t parts, std::ptrdiff_t unit);
  // Whether each thread sums a part of the depth only.
  [[nodiscard]] bool shares_depth() const { return parts_.back().k.begin > 0; }
  void run_part(Part& part, const GemmOperands& operands) const;
  void add_partials(std::size_t part, const GemmOperands& operands) const;
  void run_nkm(Part& part, const GemmOperands& operands) const;
  void run_mkn(Part& part, const GemmOperands& operands) const;
  void pack_a(Part& part, const GemmOperands& operands, const Range& m, const Range& k) const;
  void pack_b(Part& part, const GemmOperands& operands, const Range& n, const Range& k) const;
  template <bool kRowsFastest>
  void multiply_block(const Part& part, const GemmOperands& operands, const Block& block) const;

  BlockedGemmSizes sizes_;
  CpuGemmConfig config_;
  const KernelSet* kernels_ = nullptr;
  std::vector<Part> parts_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace foretune
