// Micro-kernels: one register block of C at a time, shared by everything that ends in a matrix
// product. A block is `rows` x `vectors` vector registers of one instruction set and computes
//
//   C = max(floor, alpha * A * B + beta * C_in)
//
//   A: rows x k, B: k x columns, C and C_in: rows x columns
//
// C_in may be C itself, another matrix, or a bias: one row with c_in_stride 0. With beta = 0 it is
// never read, so it may be null and its NaNs do not spread. The floor is minus infinity, or 0 for a
// ReLU; a NaN stays a NaN. Kernels with C in i32 take an alpha of 1, a beta of 0 or 1 and no floor.
// No kernel reads or writes a byte outside of the given rows and columns, tails included.
//
//   const KernelSet* kernels = kernel_set(best_cpu_isa());
//   const MicroKernel kernel = kernels->find({.rows = 8, .vectors = 2});
//   kernel({.a = a, .a_stride = lda, .b = b, .b_stride = ldb, .c = c, .c_stride = ldc, .k = k});
//
// Thread safety: free functions on constant tables. Cost: a look-up is one array access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/output_stage.h"

namespace foretune {

// The contents of the words of A and B, and how two words are multiplied. Kernels for types other
// than f32 take packed panels only, made of 32-bit words. The words are passed as floats whose bits
// nothing interprets as such, and k and the strides count words.
enum class KernelMath : std::uint8_t {
  kF32 = 0,
  kBf16Pairs = 1,  // a0 * b0 + a1 * b1 in f32, C in f32 (AVX512_BF16)
  // Unsigned bytes of A times signed ones of B, four at a time, C in i32 (AVX512_VNNI). The sums
  // start with the row before the first row of B.
  kI8Quads = 2,
  kI16Pairs = 3,  // two products of 16-bit integers, C in i32
  // Signed bytes of A plus 128 times signed ones of B, four at a time, C in i32 (AVX512_VNNI): each
  // sum is 128 times that of its column of B too large. Only kernels with taps.
  kI8Shifted = 4,
  // Signed bytes times signed ones, four at a time, C in i32, and pairs of bf16, C in f32: both in
  // the matrix tiles of AMX. Only kernels with taps, called while a TileScope lives (tile_scope.h).
  kI8Tiles = 5,
  kBf16Tiles = 6,
};

// Strides are in elements, between rows unless said otherwise.
struct MicroKernelCall {
  // By rows: element (i, p) at a[i * a_stride + p]. By columns, which a packed panel is too:
  // at a[p * a_stride + i].
  const float* a = nullptr;
  std::ptrdiff_t a_stride = 0;
  // Element (p, j) at b[p * b_stride + j], packed or not; dot kernels: at b[j * b_stride + p].
  const float* b = nullptr;
  std::ptrdiff_t b_stride = 0;
  const float* c_in = nullptr;
  std::ptrdiff_t c_in_stride = 0;
  float* c = nullptr;
  std::ptrdiff_t c_stride = 0;
  std::ptrdiff_t k = 0;  // 0 is allowed: A * B is then zero
  float alpha = 1;
  float beta = 0;
  float floor = -std::numeric_limits<float>::infinity();
  // Only for kernels that prefetch: how many rows of B ahead.
  std::ptrdiff_t rows_ahead = 0;
  // Only for dot kernels: fetches rows of A into the cache ahead of their use.
  bool prefetch_a = false;
  // Fetches the rows of C into the cache while the products are summed.
  bool prefetch_c = false;
  // Columns of the last vector that exist, 1 to lanes; only kernels with a tail look at it.
  int last_columns = 0;
  // Only for kernels with taps: A is `taps` matrices of depth k that begin a_offsets[t] words after
  // `a`. The rows of B for a tap begin b_offsets[t] words after `b`; without b_offsets they follow
  // those of the tap before.
  const std::ptrdiff_t* a_offsets = nullptr;
  const std::ptrdiff_t* b_offsets = nullptr;
  int taps = 0;
  // Bit i of tap_rows[t] says that row i of A exists for tap t; others are not read and count as 0.
  // Null: all do. Only with A by rows.
  const std::uint32_t* tap_rows = nullptr;
  // One row that all sums begin with, or null.
  const float* bias = nullptr;
  // Blocks computed one after the other, and the distances of their A and of their C. C_in moves
  // with C unless its stride is 0.
  std::ptrdiff_t blocks = 1;
  std::ptrdiff_t a_block = 0;
  std::ptrdiff_t c_block = 0;
  // Blocks come in rows of so many; 0: they are one row. The distances of the rows.
  std::ptrdiff_t row_blocks = 0;
  std::ptrdiff_t a_row = 0;
  std::ptrdiff_t c_row = 0;
  // Only for sets that round: the sums are not stored in C but rounded, and C is not looked at.
  // Rows and columns are those of the block. One block at a time.
  const OutputStageCall* rounding = nullptr;
};

using MicroKernel = void (*)(const MicroKernelCall& call);

// The loop over k.
enum class KernelLoop : std::uint8_t {
  kPlain = 0,
  kUnrolled = 1,     // four steps at a time: for blocks of so few sums that counting shows
  kPrefetching = 2,  // plain, and each step fetches a later row of B into the cache
  kTaps = 3          // unrolled, for each tap of a convolution; in a table of their own
};
inline constexpr int kKernelLoops = 3;

struct MicroKernelShape {
  int rows = 1;
  int vectors = 1;
  bool a_by_columns = false;
  bool tail = false;  // the last vector is not full
  KernelLoop loop = KernelLoop::kPlain;
};

// The limits of an instruction set; known even where its kernels are not built.
struct KernelLimits {
  int lanes = 4;
  int registers = 16;
};
constexpr KernelLimits kernel_limits(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return {.lanes = 16, .registers = 32};
    case CpuIsa::kAvx2:
      return {.lanes = 8, .registers = 16};
    case CpuIsa::kGeneric:
      break;
  }
  return {.lanes = 4, .registers = 16};
}

// Dot kernels compute blocks of rows x columns for A stored by rows and B by columns, both
// unpacked. Their vectors lie along k, so the lanes of a block are summed at the end. They are for
// few rows, where packing B would cost more than the product.
inline constexpr int kMaxDotRows = 6;
inline constexpr int kMaxDotColumns = 8;

// Returns the largest number of rows of a dot kernel with `columns` columns: registers hold its
// sums, its columns of B and one vector of A. A single row needs no register for B, whose vectors
// are used once.
constexpr int max_dot_rows(CpuIsa isa, int columns) {
  const int rows = (kernel_limits(isa).registers - columns - 1) / columns;
  return rows < 1 ? 1 : rows < kMaxDotRows ? rows : kMaxDotRows;
}

inline constexpr int kMaxKernelRows = 16;
inline constexpr int kMaxKernelVectors = 8;

// Returns the largest number of rows of a block with `vectors` vectors. Each sum takes a register;
// beside them there must be room for the row of B or the column of A, whichever is shorter, and one
// element of the other.
// More than 16 rows bring nothing: 8 sums already keep two multiply-add units with a latency of 4
// cycles busy.
constexpr int max_kernel_rows(CpuIsa isa, int vectors) {
  const int registers = kernel_limits(isa).registers;
  int rows = 0;
  while (rows < kMaxKernelRows) {
    const int next = rows + 1;
    const int shorter = next < vectors ? next : vectors;
    if (next * vectors + shorter + 1 > registers) {
      break;
    }
    rows = next;
  }
  return rows;
}

// All micro-kernels for one instruction set and one KernelMath.
struct KernelSet {
  CpuIsa isa = CpuIsa::kGeneric;
  KernelMath math = KernelMath::kF32;
  int lanes = 1;  // floats of a vector
  // [loop][a_by_columns][tail][vectors - 1][rows - 1]
  MicroKernel table[kKernelLoops][2][2][kMaxKernelVectors][kMaxKernelRows] =
      {};  // NOLINT(*-avoid-c-arrays)

  // [columns - 1][rows - 1]
  MicroKernel dot_table[kMaxDotColumns][kMaxDotRows] = {};  // NOLINT(*-avoid-c-arrays)

  // Returns nullptr when there is no such block.
  [[nodiscard]] MicroKernel find_dot(int rows, int columns) const {
    if (rows < 1 || rows > kMaxDotRows || columns < 1 || columns > kMaxDotColumns) {
      return nullptr;
    }
    return dot_table[columns - 1][rows - 1];
  }
  [[nodiscard]] MicroKernel find(const MicroKernelShape& shape) const {
    if (shape.rows < 1 || shape.rows > kMaxKernelRows || shape.vectors < 1 ||
        shape.vectors > kMaxKernelVectors) {
      return nullptr;
    }
    return table[static_cast<int>(shape.loop)][shape.a_by_columns ? 1 : 0][shape.tail ? 1 : 0]
                [shape.vectors - 1][shape.rows - 1];
  }
};

// Wider blocks are no faster, and each kernel takes long to compile.
inline constexpr int kMaxTapVectors = 4;

// The micro-kernels that sum over the taps of a convolution: plain A by rows (points of an image,
// channels last) or, for words of one float, by columns.
struct TapKernelSet {
  int lanes = 1;
  // The output type that the kernels round their sums to; f32 and i32 where they do not.
  OutputType rounds_to = OutputType::kF32;
  bool in_tiles = false;  // the kernels need a TileScope
  // [a_by_columns][tail][vectors - 1][rows - 1]
  MicroKernel table[2][2][kMaxTapVectors][kMaxKernelRows] = {};  // NOLINT(*-avoid-c-arrays)

  // Returns nullptr when there is no such block. `loop` does not matter.
  [[nodiscard]] MicroKernel find(const MicroKernelShape& shape) const {
    if (shape.rows < 1 || shape.rows > kMaxKernelRows || shape.vectors < 1 ||
        shape.vectors > kMaxTapVectors) {
      return nullptr;
    }
    return table[shape.a_by_columns ? 1 : 0][shape.tail ? 1 : 0][shape.vectors - 1][shape.rows - 1];
  }
};

// Returns the kernels with taps, or nullptr as kernel_set().
const TapKernelSet* tap_kernel_set(CpuIsa isa, KernelMath math = KernelMath::kF32);

// Returns the kernels for `isa`, or nullptr when this build has none or this CPU cannot run them.
// For words other than f32 there are only plain kernels, with A by columns.
const KernelSet* kernel_set(CpuIsa isa, KernelMath math = KernelMath::kF32);
// Says why kernel_set() returns nullptr for `isa`, or yes.
Support kernel_set_support(CpuIsa isa);

}  // namespace foretune
