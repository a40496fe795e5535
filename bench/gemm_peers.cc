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

class OpenBlas final : public Peer {
 public:
  static Result<std::unique_ptr<Peer>> load() {
    // 0.3.21 does not know newer CPUs and falls back to kernels for Haswell. No thread is there
    // yet. NOLINTBEGIN(concurrency-mt-unsafe)
    if (std::getenv("OPENBLAS_CORETYPE") == nullptr && best_cpu_isa() == CpuIsa::kAvx512) {
      ::setenv("OPENBLAS_CORETYPE",
               __builtin_cpu_supports("avx512bf16") ? "SAPPHIRERAPIDS" : "SKYLAKEX", 1);
    }
    // NOLINTEND(concurrency-mt-unsafe)
    FORETUNE_TRY(const Library library, Library::open({"libopenblas.so.0", "libopenblas.so"}));
    auto peer = std::make_unique<OpenBlas>();
    peer->sgemm_ = library.find<CblasSgemm>("cblas_sgemm");
    peer->set_threads_ = library.find<void(int)>("openblas_set_num_threads");
    auto* const config = library.find<char*()>("openblas_get_config");
    auto* const core = library.find<char*()>("openblas_get_corename");
    if (peer->sgemm_ == nullptr || peer->set_threads_ == nullptr || config == nullptr ||
        core == nullptr) {
      return fail(ErrorCode::kUnsupported, "a function of OpenBLAS is missing");
    }
    const std::string text = config();
    peer->name_ = concat(text.substr(0, text.find(' ', 9)), " (", core(), ")");
    return peer;
  }
  std::string name() const override { return name_; }
  void set_threads(int threads) override { set_threads_(threads); }
  std::function<void()> prepare(const PeerProduct& product) override {
    return prepare_cblas(sgemm_, product);
  }

 private:
  CblasSgemm* sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  std::string name_;
};

class Blis final : public Peer {
 public:
  static Result<std::unique_ptr<Peer>> load() {
    FORETUNE_TRY(const Library library, Library::open({"libblis.so.4", "libblis.so"}));
    auto peer = std::make_unique<Blis>();
    peer->sgemm_ = library.find<CblasSgemm>("cblas_sgemm");
    peer->set_threads_ = library.find<void(long)>("bli_thread_set_num_threads");
    auto* const version = library.find<const char*()>("bli_info_get_version_str");
    auto* const arch = library.find<int()>("bli_arch_query_id");
    auto* const arch_name = library.find<const char*(int)>("bli_arch_string");
    if (peer->sgemm_ == nullptr || peer->set_threads_ == nullptr || version == nullptr ||
        arch == nullptr || arch_name == nullptr) {
      return fail(ErrorCode::kUnsupported, "a function of BLIS is missing");
    }
    peer->name_ = concat("BLIS ", version(), " (", arch_name(arch()), ")");
    return peer;
  }
  std::string name() const override { return name_; }
  void set_threads(int threads) override { set_threads_(threads); }
  std::function<void()> prepare(const PeerProduct& product) override {
    return prepare_cblas(sgemm_, product);
  }

 private:
  CblasSgemm* sgemm_ = nullptr;
  void (*set_threads_)(long) = nullptr;  // its dim_t
  std::string name_;
};

// oneDNN's BLAS-like function, row-major.
class OneDnn final : public Peer {
 public:
  using Sgemm = int(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float beta, float* c, std::int64_t ldc);
  struct Version {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
  };

  static Result<std::unique_ptr<Peer>> load() {
    FORETUNE_TRY(const Library library, Library::open({"libdnnl.so.3", "libdnnl.so.2"}));
    FORETUNE_TRY(const Library openmp, Library::open({"libgomp.so.1"}));
    auto peer = std::make_unique<OneDnn>();
    peer->sgemm_ = library.find<Sgemm>("dnnl_sgemm");
    peer->set_threads_ = openmp.find<void(int)>("omp_set_num_threads");
    auto* const version = library.find<const Version*()>("dnnl_version");
    if (peer->sgemm_ == nullptr || peer->set_threads_ == nullptr || version == nullptr) {
      return fail(ErrorCode::kUnsupported, "a function of oneDNN is missing");
    }
    const Version& v = *version();
    peer->name_ = concat("oneDNN ", v.major, ".", v.minor, ".", v.patch);
    return peer;
  }
  std::string name() const override { return name_; }
  void set_threads(int threads) override { set_threads_(threads); }
  std::function<void()> prepare(const PeerProduct& p) override {
    Sgemm* const sgemm = sgemm_;
    return [=] {
      sgemm(p.a_by_columns ? 'T' : 'N', p.b_by_columns ? 'T' : 'N', p.m, p.n, p.k, 1.0F, p.a,
            p.a_by_columns ? p.m : p.k, p.b, p.b_by_columns ? p.k : p.n, 0.0F, p.c, p.n);
    };
  }

 private:
  Sgemm* sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  std::string name_;
};

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
  add("OpenBLAS", OpenBlas::load());
  add("BLIS", Blis::load());
  add("oneDNN", OneDnn::load());
  if (std::unique_ptr<Peer> libxsmm = make_libxsmm(); libxsmm != nullptr) {
    peers.found.push_back(std::move(libxsmm));
  } else {
    peers.missing.emplace_back("LIBXSMM: not found when this was built");
  }
  return peers;
}

}  // namespace foretune
