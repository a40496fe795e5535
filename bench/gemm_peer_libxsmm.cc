// LIBXSMM as a peer: compiles a kernel for one size of small matrices. It is a static library, so
// it is found when the benchmarks are built, not when they run.
#include <memory>

#include "bench/gemm_peers.h"
#include "foretune/base/text.h"

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
  void set_threads(int /*threads*/) override {}  // its kernels use one
  std::function<void()> prepare(const PeerProduct& p) override {
    // It has no cache blocking, and no kernels for operands stored by columns.
    constexpr double kMost = 256.0 * 256 * 256;
    if (p.a_by_columns || p.b_by_columns ||
        static_cast<double>(p.m * p.n) * static_cast<double>(p.k) > kMost) {
      return {};
    }
    // It is column-major: C^T = B^T * A^T.
    const auto m = static_cast<libxsmm_blasint>(p.n);
    const auto n = static_cast<libxsmm_blasint>(p.m);
    const auto k = static_cast<libxsmm_blasint>(p.k);
    const float alpha = 1;
    const float beta = 0;
    const libxsmm_smmfunction kernel =
        libxsmm_smmdispatch(m, n, k, &m, &k, &m, &alpha, &beta, nullptr, nullptr);
    if (kernel == nullptr) {
      return {};
    }
    return [kernel, p] { kernel(p.b, p.a, p.c); };
  }
};

}  // namespace

std::unique_ptr<Peer> make_libxsmm() { return std::make_unique<LibXsmm>(); }

#else

std::unique_ptr<Peer> make_libxsmm() { return nullptr; }

#endif

}  // namespace foretune
