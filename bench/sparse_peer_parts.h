// Helpers of the files that load sparse peers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/sparse_peers.h"

namespace foretune {

// A matrix in CSR with starts of rows of another type than ours: libraries take 32-bit ones.
template <class Start>
std::vector<Start> starts_as(const sparse::Csr<float>& matrix) {
  std::vector<Start> out(static_cast<std::size_t>(matrix.rows) + 1);
  std::transform(matrix.starts.data(), matrix.starts.data() + out.size(), out.begin(),
                 [](std::int64_t start) { return static_cast<Start>(start); });
  return out;
}

// Each is null where the benchmarks were built without the library.
std::unique_ptr<SparsePeer> make_librsb(int threads);
std::unique_ptr<SparsePeer> make_eigen(int threads);
std::unique_ptr<SparsePeer> make_graphblas(int threads);
std::unique_ptr<SparsePeer> make_sparse_libxsmm();

// The loops that TACO writes for CSR (sparse_peer_taco_loops.cc). `starts` has rows + 1 elements.
struct TacoMatrix {
  std::int32_t rows = 0;
  const std::int32_t* starts = nullptr;
  const std::int32_t* column_of = nullptr;
  const float* values = nullptr;
  std::int32_t threads = 1;
};
void taco_spmv(const TacoMatrix& a, const float* x, float* y);
void taco_spmm(const TacoMatrix& a, const float* b, std::int32_t width, float* c);
void taco_sddmm(const TacoMatrix& a, const float* b, const float* c, std::int32_t width, float* d);

}  // namespace foretune
