// Micro-kernels: one register block of C at a time, shared by everything that ends in a matrix
// product. A block is `rows` x `vectors` vector registers of one instruction set and computes
//
//   C = alpha * A * B + beta * C_in        A: rows x k, B: k x columns, C and C_in: rows x columns
//
// C_in may be C itself, another matrix, or a bias: one row with c_in_stride 0. With beta = 0 it is
// never read, so it may be null and its NaNs do not spread. No kernel reads or writes a byte
// outside of the given rows and columns, tails included.
//
//   const KernelSet* kernels = kernel_set(best_cpu_isa());
//   const MicroKernel kernel = kernels->find({.rows = 8, .vectors = 2});
//   kernel({.a = a, .a_row_stride = lda, .b = b, .b_stride = ldb, .c = c, .c_stride = ldc, .k =
//   k});
//
// Thread safety: free functions on constant tables. Cost: a look-up is one array access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"

namespace foretune {

// Strides are in elements, between rows.
struct MicroKernelCall {
  // Packed: element (i, p) at a[p * rows + i], where rows is that of the kernel; else at
  // a[i * a_row_stride + p].
  const float* a = nullptr;
  std::ptrdiff_t a_row_stride = 0;
  const float* b = nullptr;  // element (p, j) at b[p * b_stride + j], packed or not
  std::ptrdiff_t b_stride = 0;
  const float* c_in = nullptr;
  std::ptrdiff_t c_in_stride = 0;
  float* c = nullptr;
  std::ptrdiff_t c_stride = 0;
  std::ptrdiff_t k = 0;  // 0 is allowed: A * B is then zero
  float alpha = 1;
  float beta = 0;
  // Columns of the last vector that exist, 1 to lanes; only kernels with a tail look at it.
  int last_columns = 0;
};

using MicroKernel = void (*)(const MicroKernelCall& call);

struct MicroKernelShape {
  int rows = 1;
  int vectors = 1;
  bool packed_a = false;
  bool tail = false;  // the last vector is not full
};

// What an instruction set allows, known without its kernels being there.
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

inline constexpr int kMaxKernelRows = 16;
inline constexpr int kMaxKernelVectors = 8;

// The most rows of a block of so many vectors. A register holds each sum; beside them there must be
// room for the row of B or the column of A, whichever is shorter, and one element of the other.
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

// All micro-kernels of one instruction set.
struct KernelSet {
  CpuIsa isa = CpuIsa::kGeneric;
  int lanes = 1;  // floats of a vector
  // [packed_a][tail][vectors - 1][rows - 1]
  MicroKernel table[2][2][kMaxKernelVectors][kMaxKernelRows] = {};  // NOLINT(*-avoid-c-arrays)

  // nullptr when there is no such block.
  [[nodiscard]] MicroKernel find(const MicroKernelShape& shape) const {
    if (shape.rows < 1 || shape.rows > kMaxKernelRows || shape.vectors < 1 ||
        shape.vectors > kMaxKernelVectors) {
      return nullptr;
    }
    return table[shape.packed_a ? 1 : 0][shape.tail ? 1 : 0][shape.vectors - 1][shape.rows - 1];
  }
};

// The kernels for `isa`, or nullptr when this build has none or this CPU cannot run them.
const KernelSet* kernel_set(CpuIsa isa);
// The same question with the reason for a refusal.
Support kernel_set_support(CpuIsa isa);

}  // namespace foretune
