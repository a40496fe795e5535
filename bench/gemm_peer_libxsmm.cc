// LIBXSMM as a peer: compiles a kernel for one size of small matrices. It is a static library, so
// it is found when the benchmarks are built, not when they run.
#include <memory>

#include "bench/gemm_peer_parts.h"

#ifdef FORETUNE_HAS_LIBXSMM
#include <libxsmm.h>
#endif

namespace foretune {

#ifdef FORETUNE_HAS_LIBXSMM
namespace {

class LibXsmm final : public Peer {
 public:
  LibXsmm() { libxsmm_init(); }
  ~LibXsmm() override { libxsmm_finalize(); }
  std::string name() const override {
    return concat("LIBXSMM ", LIBXSMM_VERSION, " (", libxsmm_get_target_arch(), ")");
  }
  std::string library() const override { return "libxsmm"; }
  std::function<void()> plan(const PeerProduct& p) override {
    const libxsmm_smmfunction kernel = kernel_of(p);
    if (kernel == nullptr) {
      return {};
    }
    return [kernel, p] { kernel(p.b, p.a, p.c); };
  }
  // As libxsmm_sgemm does: looks the kernel up in every call.
  std::function<void()> call(const PeerProduct& p) override {
    if (kernel_of(p) == nullptr) {
      return {};
    }
    return [p] { kernel_of(p)(p.b, p.a, p.c); };
  }

 private:
  static libxsmm_smmfunction kernel_of(const PeerProduct& p) {
    // It has no cache blocking, and no kernels for operands stored by columns.
    constexpr double kMost = 256.0 * 256 * 256;
    if (p.a_by_columns || p.b_by_columns ||
        static_cast<double>(p.m * p.n) * static_cast<double>(p.k) > kMost) {
      return nullptr;
    }
    // It is column-major: C^T = B^T * A^T.
    const auto m = static_cast<libxsmm_blasint>(p.n);
    const auto n = static_cast<libxsmm_blasint>(p.m);
    const auto k = static_cast<libxsmm_blasint>(p.k);
    const float alpha = 1;
    const float beta = 0;
    return libxsmm_smmdispatch(m, n, k, &m, &k, &m, &alpha, &beta, nullptr, nullptr);
  }
};

}  // namespace

std::unique_ptr<Peer> make_libxsmm() { return std::make_unique<LibXsmm>(); }

#else

std::unique_ptr<Peer> make_libxsmm() { return nullptr; }

#endif

}  // namespace foretune
