// The loops over CSR that the TACO compiler (Kjolstad et al., OOPSLA 2017) generates, written from
// their description: one loop for each index variable in the order of the storage, sums of a row
// of results in memory for products with a matrix and in a register for inner products; several
// threads take chunks of rows as they come. Compiled as TACO compiles, with -O3 -ffast-math for
// this CPU.
#include <cstdint>

#include "bench/sparse_peer_parts.h"

namespace foretune {
namespace {

// The rows of a chunk.
constexpr std::int32_t kChunk = 16;

// Calls rows(first, last) for all rows of the matrix.
template <class Rows>
void for_rows(const TacoMatrix& a, const Rows& rows) {
  if (a.threads == 1) {
    rows(0, a.rows);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(a.threads)
  for (std::int32_t first = 0; first < a.rows; first += kChunk) {
    rows(first, first + kChunk < a.rows ? first + kChunk : a.rows);
  }
}

}  // namespace

void taco_spmv(const TacoMatrix& a, const float* x, float* y) {
  for_rows(a, [&](std::int32_t first, std::int32_t last) {
    const std::int32_t* __restrict__ const starts = a.starts;
    const std::int32_t* __restrict__ const column_of = a.column_of;
    const float* __restrict__ const values = a.values;
    const float* __restrict__ const in = x;
    float* __restrict__ const out = y;
    for (std::int32_t i = first; i < last; ++i) {
      float sum = 0.0F;
      for (std::int32_t p = starts[i]; p < starts[i + 1]; ++p) {
        sum += values[p] * in[column_of[p]];
      }
      out[i] = sum;
    }
  });
}

void taco_spmm(const TacoMatrix& a, const float* b, std::int32_t width, float* c) {
  for_rows(a, [&](std::int32_t first, std::int32_t last) {
    const std::int32_t* __restrict__ const starts = a.starts;
    const std::int32_t* __restrict__ const column_of = a.column_of;
    const float* __restrict__ const values = a.values;
    const float* __restrict__ const dense = b;
    float* __restrict__ const out = c;
    for (std::int32_t i = first; i < last; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      for (std::int32_t j = 0; j < width; ++j) {
        out[row + j] = 0.0F;
      }
      for (std::int32_t p = starts[i]; p < starts[i + 1]; ++p) {
        const std::int64_t other = static_cast<std::int64_t>(column_of[p]) * width;
        for (std::int32_t j = 0; j < width; ++j) {
          out[row + j] = out[row + j] + values[p] * dense[other + j];
        }
      }
    }
  });
}

void taco_sddmm(const TacoMatrix& a, const float* b, const float* c, std::int32_t width, float* d) {
  for_rows(a, [&](std::int32_t first, std::int32_t last) {
    const std::int32_t* __restrict__ const starts = a.starts;
    const std::int32_t* __restrict__ const column_of = a.column_of;
    const float* __restrict__ const values = a.values;
    const float* __restrict__ const left = b;
    const float* __restrict__ const right = c;
    float* __restrict__ const out = d;
    for (std::int32_t i = first; i < last; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      for (std::int32_t p = starts[i]; p < starts[i + 1]; ++p) {
        const std::int64_t other = static_cast<std::int64_t>(column_of[p]) * width;
        float sum = 0.0F;
        for (std::int32_t k = 0; k < width; ++k) {
          sum += values[p] * left[row + k] * right[other + k];
        }
        out[p] = sum;
      }
    }
  });
}

}  // namespace foretune
