// MKL and oneDNN from their wheels. Each takes a threading runtime: MKL GCC's OpenMP (or none
// for one thread), oneDNN's current wheel TBB below SYCL.
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "bench/gemm_peer_parts.h"

namespace foretune {
namespace {

// Libraries that others ask for by name; a loader that knows them does not search for them.
void open_runtimes(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    ::dlopen(concat(peers_folder(), "/lib/", name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

// MKL's numbers of its threading layers.
constexpr int kGnuThreads = 3;
constexpr int kSequential = 1;

// Binds the calling thread to its first cores while it lives: TBB makes as many threads as its
// first user may run on, for ever.
class FewCores {
 public:
  explicit FewCores(int cores) {
    CPU_ZERO(&before_);
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t few;
    CPU_ZERO(&few);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE && cores > 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) {
        CPU_SET(cpu, &few);
        --cores;
      }
    }
    ::sched_setaffinity(0, sizeof few, &few);
  }
  ~FewCores() { ::sched_setaffinity(0, sizeof before_, &before_); }
  FewCores(const FewCores&) = delete;
  FewCores& operator=(const FewCores&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace

Result<Mkl> open_mkl(int threads) {
  const std::array<std::string, 2> names{concat(peers_folder(), "/lib/libmkl_rt.so.3"),
                                         concat(peers_folder(), "/lib/libmkl_rt.so.2")};
  FORETUNE_TRY(const PeerLibrary library, PeerLibrary::open(names));
  auto* const set_layer = library.find<int(int)>("MKL_Set_Threading_Layer");
  auto* const set_threads = library.find<void(int)>("MKL_Set_Num_Threads");
  auto* const version = library.find<void(char*, int)>("MKL_Get_Version_String");
  if (set_layer == nullptr || set_threads == nullptr || version == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of MKL is missing");
  }
  set_layer(threads == 1 ? kSequential : kGnuThreads);
  set_threads(threads);
  std::array<char, 200> text{};
  version(text.data(), static_cast<int>(text.size()) - 1);
  std::string name(text.data());
  // "Intel(R) oneAPI Math Kernel Library Version 2026.2-Product Build ... for ..."
  const std::size_t number = name.find("Version ");
  name = number == std::string::npos
             ? "MKL"
             : concat("MKL ", name.substr(number + 8, name.find('-', number) - number - 8));
  return Mkl{library, std::move(name)};
}

Result<std::unique_ptr<Peer>> load_mkl(int threads) {
  using Create = int(void** jitter, int order, int transpose_a, int transpose_b, std::size_t m,
                     std::size_t n, std::size_t k, float alpha, std::size_t lda, std::size_t ldb,
                     float beta, std::size_t ldc);
  using Kernel = void(void* jitter, float* a, float* b, float* c);
  FORETUNE_TRY(const Mkl mkl, open_mkl(threads));
  auto* const sgemm = mkl.library.find<CblasSgemm>("cblas_sgemm");
  auto* const create = mkl.library.find<Create>("mkl_cblas_jit_create_sgemm");
  auto* const kernel_of = mkl.library.find<Kernel*(void*)>("mkl_jit_get_sgemm_ptr");
  if (sgemm == nullptr || create == nullptr || kernel_of == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of MKL is missing");
  }
  const auto call = [sgemm](const PeerProduct& p) { return cblas_call(sgemm, p); };
  const auto plan = [=](const PeerProduct& p) -> std::function<void()> {
    const auto size = [](std::ptrdiff_t value) { return static_cast<std::size_t>(value); };
    void* jitter = nullptr;
    // 0 is success; anything else says that there is no kernel of its own for these sizes.
    if (threads == 1 &&
        create(&jitter, 101, p.a_by_columns ? 112 : 111, p.b_by_columns ? 112 : 111, size(p.m),
               size(p.n), size(p.k), 1.0F, size(p.a_by_columns ? p.m : p.k),
               size(p.b_by_columns ? p.k : p.n), 0.0F, size(p.n)) == 0) {
      return [kernel = kernel_of(jitter), jitter, p] { kernel(jitter, p.a, p.b, p.c); };
    }
    return cblas_call(sgemm, p);
  };
  return std::make_unique<LoadedPeer>(mkl.name, "mkl", plan, call);
}

Result<std::unique_ptr<Peer>> load_onednn(int threads) {
  using Sgemm = int(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float beta, float* c, std::int64_t ldc);
  struct Version {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
  };
  const FewCores bound(threads);
  open_runtimes({"libintlc.so.5", "libimf.so", "libsvml.so", "libirng.so", "libtbb.so.12",
                 "libumf.so.1", "libur_loader.so.0", "libsycl.so.9", "libsycl.so.8"});
  const std::array<std::string, 1> names{concat(peers_folder(), "/lib/libdnnl.so.3")};
  // Bound deeply, since another version of the library may be there under the same name.
  FORETUNE_TRY(const PeerLibrary library, PeerLibrary::open(names, RTLD_LOCAL | RTLD_DEEPBIND));
  auto* const sgemm = library.find<Sgemm>("dnnl_sgemm");
  auto* const version = library.find<const Version*()>("dnnl_version");
  if (sgemm == nullptr || version == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of oneDNN is missing");
  }
  const Version& v = *version();
  const auto call = [sgemm](const PeerProduct& p) -> std::function<void()> {
    return [=] {
      sgemm(p.a_by_columns ? 'T' : 'N', p.b_by_columns ? 'T' : 'N', p.m, p.n, p.k, 1.0F, p.a,
            p.a_by_columns ? p.m : p.k, p.b, p.b_by_columns ? p.k : p.n, 0.0F, p.c, p.n);
    };
  };
  // The first product makes the threads.
  constexpr std::ptrdiff_t kSize = 256;
  std::vector<float> ones(kSize * kSize, 1.0F);
  std::vector<float> product(kSize * kSize);
  call({.m = kSize,
        .n = kSize,
        .k = kSize,
        .a = ones.data(),
        .b = ones.data(),
        .c = product.data()})();
  return std::make_unique<LoadedPeer>(concat("oneDNN ", v.major, ".", v.minor, ".", v.patch),
                                      "onednn", call, call);
}

}  // namespace foretune
