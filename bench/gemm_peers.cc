#include "bench/gemm_peers.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

// A shared library and its functions, by name.
class Library {
 public:
  static Result<Library> open(std::initializer_list<const char*> names) {
    std::string error;
    for (const char* name : names) {
      if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
        return Library(handle);
      }
      error = ::dlerror();  // NOLINT(concurrency-mt-unsafe): before any thread
    }
    return fail(ErrorCode::kNotFound, error);
  }
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;  // never closed: the libraries' threads live on
};

// CBLAS: 101 is row-major, 111 is no transposition, 112 a transposition.
using CblasSgemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k,
                        float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                        float* c, int ldc);

std::function<void()> prepare_cblas(CblasSgemm* sgemm, const PeerProduct& p) {
  const int m = static_cast<int>(p.m);
  const int n = static_cast<int>(p.n);
  const int k = static_cast<int>(p.k);
  return [=] {
    sgemm(101, p.a_by_columns ? 112 : 111, p.b_by_columns ? 112 : 111, m, n, k, 1.0F, p.a,
          p.a_by_columns ? m : k, p.b, p.b_by_columns ? k : n, 0.0F, p.c, n);
  };
}

class LoadedPeer final : public Peer {
 public:
  using Prepare = std::function<std::function<void()>(const PeerProduct&)>;
  LoadedPeer(std::string name, std::function<void(int)> set_threads, Prepare prepare)
      : name_(std::move(name)),
        set_threads_(std::move(set_threads)),
        prepare_(std::move(prepare)) {}
  std::string name() const override { return name_; }
  void set_threads(int threads) override { set_threads_(threads); }
  std::function<void()> prepare(const PeerProduct& product) override { return prepare_(product); }

 private:
  std::string name_;
  std::function<void(int)> set_threads_;
  Prepare prepare_;
};

std::unique_ptr<Peer> cblas_peer(std::string name, CblasSgemm* sgemm,
                                 std::function<void(int)> set_threads) {
  return std::make_unique<LoadedPeer>(
      std::move(name), std::move(set_threads),
      [sgemm](const PeerProduct& product) { return prepare_cblas(sgemm, product); });
}

Result<std::unique_ptr<Peer>> load_openblas() {
  // 0.3.21 does not know newer CPUs and falls back to kernels for Haswell. No thread is there yet.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr && best_cpu_isa() == CpuIsa::kAvx512) {
    ::setenv("OPENBLAS_CORETYPE",
             __builtin_cpu_supports("avx512bf16") ? "SAPPHIRERAPIDS" : "SKYLAKEX", 1);
  }
  // NOLINTEND(concurrency-mt-unsafe)
  FORETUNE_TRY(const Library library, Library::open({"libopenblas.so.0", "libopenblas.so"}));
  auto* const sgemm = library.find<CblasSgemm>("cblas_sgemm");
  auto* const set_threads = library.find<void(int)>("openblas_set_num_threads");
  auto* const config = library.find<char*()>("openblas_get_config");
  auto* const core = library.find<char*()>("openblas_get_corename");
  if (sgemm == nullptr || set_threads == nullptr || config == nullptr || core == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of OpenBLAS is missing");
  }
  const std::string text = config();
  return cblas_peer(concat(text.substr(0, text.find(' ', 9)), " (", core(), ")"), sgemm,
                    set_threads);
}

Result<std::unique_ptr<Peer>> load_blis() {
  // It knows CPUs with AVX-512 by their brand, which virtual machines hide. 0 is its number for
  // skx. NOLINTBEGIN(concurrency-mt-unsafe)
  if (std::getenv("BLIS_ARCH_TYPE") == nullptr && best_cpu_isa() == CpuIsa::kAvx512) {
    ::setenv("BLIS_ARCH_TYPE", "0", 1);
  }
  // NOLINTEND(concurrency-mt-unsafe)
  FORETUNE_TRY(const Library library, Library::open({"libblis.so.4", "libblis.so"}));
  auto* const sgemm = library.find<CblasSgemm>("cblas_sgemm");
  auto* const set_threads = library.find<void(long)>("bli_thread_set_num_threads");  // its dim_t
  auto* const version = library.find<const char*()>("bli_info_get_version_str");
  auto* const initialise = library.find<void()>("bli_init");
  auto* const arch = library.find<int()>("bli_arch_query_id");
  auto* const arch_name = library.find<const char*(int)>("bli_arch_string");
  if (sgemm == nullptr || set_threads == nullptr || version == nullptr || initialise == nullptr ||
      arch == nullptr || arch_name == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of BLIS is missing");
  }
  initialise();
  return cblas_peer(concat("BLIS ", version(), " (", arch_name(arch()), ")"), sgemm, set_threads);
}

// oneDNN's BLAS-like function, row-major.
Result<std::unique_ptr<Peer>> load_onednn() {
  using Sgemm = int(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float beta, float* c, std::int64_t ldc);
  struct Version {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
  };
  FORETUNE_TRY(const Library library, Library::open({"libdnnl.so.3", "libdnnl.so.2"}));
  FORETUNE_TRY(const Library openmp, Library::open({"libgomp.so.1"}));
  auto* const sgemm = library.find<Sgemm>("dnnl_sgemm");
  auto* const set_threads = openmp.find<void(int)>("omp_set_num_threads");
  auto* const version = library.find<const Version*()>("dnnl_version");
  if (sgemm == nullptr || set_threads == nullptr || version == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of oneDNN is missing");
  }
  const Version& v = *version();
  return std::make_unique<LoadedPeer>(
      concat("oneDNN ", v.major, ".", v.minor, ".", v.patch), set_threads,
      [sgemm](const PeerProduct& p) -> std::function<void()> {
        return [=] {
          sgemm(p.a_by_columns ? 'T' : 'N', p.b_by_columns ? 'T' : 'N', p.m, p.n, p.k, 1.0F, p.a,
                p.a_by_columns ? p.m : p.k, p.b, p.b_by_columns ? p.k : p.n, 0.0F, p.c, p.n);
        };
      });
}

}  // namespace

Peers load_peers() {
  Peers peers;
  const auto add = [&](const char* name, Result<std::unique_ptr<Peer>> peer) {
    if (peer) {
      peers.found.push_back(*std::move(peer));
    } else {
      peers.missing.push_back(concat(name, ": ", peer.error().message));
    }
  };
  add("OpenBLAS", load_openblas());
  add("BLIS", load_blis());
  add("oneDNN", load_onednn());
  if (std::unique_ptr<Peer> libxsmm = make_libxsmm(); libxsmm != nullptr) {
    peers.found.push_back(std::move(libxsmm));
  } else {
    peers.missing.emplace_back("LIBXSMM: not found when this was built");
  }
  return peers;
}

}  // namespace foretune
