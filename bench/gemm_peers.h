// The libraries that matrix products are compared with. Most are loaded when the program runs, so
// that the benchmarks build and run without any of them. scripts/install_dependencies.sh --bench
// puts current wheels into build/peers and older packages of Debian's beside them.
// Thread safety: one thread uses the peers; they make their own threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace foretune {

// C = A * B in f32. C is row-major and dense; A and B are dense and row-major or stored by columns.
struct PeerProduct {
  std::ptrdiff_t m = 1;
  std::ptrdiff_t n = 1;
  std::ptrdiff_t k = 1;
  bool a_by_columns = false;
  bool b_by_columns = false;
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
};

class Peer {
 public:
  virtual ~Peer() = default;
  // Name, version, and the library's choice for this CPU.
  virtual std::string name() const = 0;
  // The library without its version, for names of figures: mkl, onednn, openblas, blis, libxsmm.
  virtual std::string library() const = 0;
  // Returns a function that computes the product. Work that a program does once for a product of
  // these sizes is done here: compiling a kernel, creating a primitive. Operands are not
  // rearranged. Empty when the library does not support the product.
  virtual std::function<void()> plan(const PeerProduct& product) = 0;
  // Returns a whole call as programs make it, without state of earlier calls. Empty when the
  // library has no such call.
  virtual std::function<void()> call(const PeerProduct& product) = 0;
};

// The libraries that were found, and for each missing one the reason.
struct Peers {
  std::vector<std::unique_ptr<Peer>> found;
  std::vector<std::string> missing;
};
// Loads peers that compute with `threads` threads. Call it once, before any thread is made: it sets
// environment variables and changes the affinity of the calling thread for a while.
Peers load_peers(int threads);

// Returns the folder of the current wheels, if installed: lib/ holds MKL and oneDNN.
std::string peers_folder();

}  // namespace foretune
