// The libraries that sparse products are compared with, and the plain loops over CSR that TACO
// generates. MKL is loaded when the program runs, the others are found when it is built; without
// any of them it builds and runs. scripts/install_dependencies.sh --bench installs them.
// Thread safety: one thread uses the peers; those with threads take GCC's OpenMP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/csr.h"

namespace foretune {

// A product in f32: y = A x, C = A B, or D = A * (B C) at the non-zeros of A. Dense operands are in
// the layout of families/sparse_cpu/sparse_data.h.
struct SparsePeerProduct {
  SparseOperation operation = SparseOperation::kSpmm;
  const sparse::Csr<float>* matrix = nullptr;
  std::int64_t width = 1;
  const float* first = nullptr;
  const float* second = nullptr;  // sddmm
  float* output = nullptr;
};

// A product that is ready to run. `finish` brings the result of the last run to the product's
// output, where the library keeps results of its own; empty where run() writes the output. Both are
// empty where the library does not support the product.
struct SparsePeerRun {
  std::function<void()> run;
  std::function<void()> finish;
};

class SparsePeer {
 public:
  virtual ~SparsePeer() = default;
  // Name and version.
  virtual std::string name() const = 0;
  // The library without its version, for names of figures: mkl, librsb, eigen, graphblas, libxsmm,
  // taco_csr.
  virtual std::string library() const = 0;
  // Does what a program does once for a matrix: converts it to the library's own form, gives hints,
  // tunes. The product's operands must outlive the result.
  virtual SparsePeerRun prepare(const SparsePeerProduct& product) = 0;
};

// The peers that were found, and for each missing one a sentence.
struct SparsePeers {
  std::vector<std::unique_ptr<SparsePeer>> found;
  std::vector<std::string> missing;
};
// Loads peers that compute with `threads` threads. Call it once, before any thread is made.
SparsePeers load_sparse_peers(int threads);

}  // namespace foretune
