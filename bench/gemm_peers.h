// The libraries that a matrix product is measured beside. All but LIBXSMM are loaded when the
// program runs, so that the benchmarks build and run without any of them.
// Thread safety: one thread uses the peers; they bring their own.
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
  // Name, version, and what it chose for this CPU.
  virtual std::string name() const = 0;
  virtual void set_threads(int threads) = 0;
  // Everything that a user would do once; the returned function computes the product. Empty when
  // the library does not do such products.
  virtual std::function<void()> prepare(const PeerProduct& product) = 0;
};

// Null when the benchmarks were built without it.
std::unique_ptr<Peer> make_libxsmm();

// The libraries found, and of those not found why.
struct Peers {
  std::vector<std::unique_ptr<Peer>> found;
  std::vector<std::string> missing;
};
// Must be called before any thread is made: environment variables are set.
Peers load_peers();

}  // namespace foretune
