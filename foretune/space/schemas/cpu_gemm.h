// A config of the cpu-gemm family as a struct. The schema is named "cpu-gemm", and its words stand
// in this order:
//
//   isa      generic, avx2, avx512: which micro-kernels
//   kernel   outer: vectors lie along the columns of C, each step of depth adds an outer product
//            dot: vectors lie along the depth, for A stored by rows and B by columns, unpacked
//   mr, nr   rows and columns of a register block of C, in elements; nr is a multiple of the lanes
//            (4, 8 or 16) unless the kernel is dot. Blocks at the lower and right edge are smaller;
//            nothing is padded
//   pack_a   no, yes: yes copies a block of A into panels of mr rows first
//   pack_b   no, yes: yes copies a block of B into panels of nr columns first
//   mc       rows of a cache block, nc columns, kc depth: upper bounds. A dimension is cut into
//   nc       ceil(size / bound) blocks of nearly equal size, multiples of mr, nr and 8 (so a block
//   kc       of rows may exceed mc by less than mr); no block is a small remainder
//   order    nkm: for each block of columns, of depth, of rows; B is the outer (large) panel, and
//            inside a block the rows run fastest
//            mkn: for each block of rows, of depth, of columns; A is the outer panel, and inside a
//            block the columns run fastest
//   unroll   1, 4: steps of depth in one round of the innermost loop; outer kernels only
//   prefetch 0: nothing; else how many rows of B ahead the innermost loop fetches into the cache;
//            that loop is not unrolled then; outer kernels only. The block of C is always fetched
//            while its products are summed
//   threads  how many share the work
//   split    m, n, batch: the dimension they share; grid: m and n, in the grid that reads least;
//            k: each sums a part of the depth into a matrix of its own, and then they add these up.
//            m when there is one thread
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/space/config.h"

namespace foretune {

// Words of configs: never renumber.
enum class GemmKernel : std::uint8_t { kOuter = 0, kDot = 1 };
enum class GemmLoopOrder : std::uint8_t { kNkm = 0, kMkn = 1 };
enum class GemmSplit : std::int32_t { kM = 0, kN = 1, kBatch = 2, kGrid = 3, kK = 4 };

// Positions of the words.
enum class CpuGemmField : std::uint8_t {
  kIsa = 0,
  kKernel,
  kMr,
  kNr,
  kPackA,
  kPackB,
  kMc,
  kNc,
  kKc,
  kOrder,
  kUnroll,
  kPrefetch,
  kThreads,
  kSplit,
  kCount,
};
inline constexpr std::size_t kCpuGemmWords = static_cast<std::size_t>(CpuGemmField::kCount);

struct CpuGemmConfig {
  CpuIsa isa = CpuIsa::kGeneric;
  GemmKernel kernel = GemmKernel::kOuter;
  int mr = 1;
  int nr = 4;
  bool pack_a = false;
  bool pack_b = false;
  int mc = 64;
  int nc = 64;
  int kc = 64;
  GemmLoopOrder order = GemmLoopOrder::kNkm;
  int unroll = 1;
  int prefetch = 0;
  int threads = 1;
  GemmSplit split = GemmSplit::kM;

  // Errors: kMismatch for a config of another schema, kInvalidArgument for words out of range.
  static Result<CpuGemmConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const CpuGemmConfig&) const = default;
};

const ConfigSchema& cpu_gemm_schema();

}  // namespace foretune
