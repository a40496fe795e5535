#include "bench/gemm_peers.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bench/gemm_peer_parts.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

// CBLAS: 101 is row-major, 111 is no transposition, 112 a transposition.
constexpr int kRowMajor = 101;
constexpr int transposition(bool by_columns) { return by_columns ? 112 : 111; }

// Without a plan: programs call cblas_sgemm every time.
std::unique_ptr<Peer> cblas_peer(std::string name, std::string library, CblasSgemm* sgemm) {
  const auto call = [sgemm](const PeerProduct& product) { return cblas_call(sgemm, product); };
  return std::make_unique<LoadedPeer>(std::move(name), std::move(library), call, call);
}

// The OpenBLAS of NumPy and SciPy, in the folder of whatever Python installed it.
std::string openblas_wheel() {
  constexpr std::string_view kInside = "site-packages/scipy_openblas32/lib/libscipy_openblas.so";
  std::error_code error;
  for (const auto& python :
       std::filesystem::directory_iterator(concat(peers_folder(), "/lib"), error)) {
    if (const auto path = python.path() / kInside; std::filesystem::exists(path, error)) {
      return path.string();
    }
  }
  return "libscipy_openblas.so";
}

Result<std::unique_ptr<Peer>> load_openblas(int threads) {
  // Virtual machines hide which CPU they have; without a hint an older kernel would run. No thread
  // is there yet. NOLINTBEGIN(concurrency-mt-unsafe)
  if (best_cpu_isa() == CpuIsa::kAvx512) {
    ::setenv("OPENBLAS_CORETYPE",
             __builtin_cpu_supports("avx512bf16") ? "SAPPHIRERAPIDS" : "SKYLAKEX", 0);
  }
  // NOLINTEND(concurrency-mt-unsafe)
  // The wheel prefixes its functions, so that several copies can live in one process.
  const std::array<std::string, 3> names{openblas_wheel(), "libopenblas.so.0", "libopenblas.so"};
  FORETUNE_TRY(const PeerLibrary library, PeerLibrary::open(names));
  const std::string prefix =
      library.find<void()>("scipy_cblas_sgemm") != nullptr ? "scipy_" : std::string();
  const auto name = [&](const char* function) { return concat(prefix, function); };
  auto* const sgemm = library.find<CblasSgemm>(name("cblas_sgemm").c_str());
  auto* const set_threads = library.find<void(int)>(name("openblas_set_num_threads").c_str());
  auto* const config = library.find<char*()>(name("openblas_get_config").c_str());
  auto* const core = library.find<char*()>(name("openblas_get_corename").c_str());
  if (sgemm == nullptr || set_threads == nullptr || config == nullptr || core == nullptr) {
    return fail(ErrorCode::kUnsupported, "a function of OpenBLAS is missing");
  }
  set_threads(threads);
  const std::string text = config();
  return cblas_peer(concat(text.substr(0, text.find(' ', 9)), " (", core(), ")"), "openblas",
                    sgemm);
}

Result<std::unique_ptr<Peer>> load_blis(int threads) {
  // It knows CPUs with AVX-512 by their brand, which virtual machines hide. 0 is its number for
  // skx. NOLINTBEGIN(concurrency-mt-unsafe)
  if (best_cpu_isa() == CpuIsa::kAvx512) {
    ::setenv("BLIS_ARCH_TYPE", "0", 0);
  }
  // NOLINTEND(concurrency-mt-unsafe)
  const std::array<std::string, 2> names{"libblis.so.4", "libblis.so"};
  FORETUNE_TRY(const PeerLibrary library, PeerLibrary::open(names));
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
  set_threads(threads);
  return cblas_peer(concat("BLIS ", version(), " (", arch_name(arch()), ")"), "blis", sgemm);
}

}  // namespace

std::function<void()> cblas_call(CblasSgemm* sgemm, const PeerProduct& p) {
  const int m = static_cast<int>(p.m);
  const int n = static_cast<int>(p.n);
  const int k = static_cast<int>(p.k);
  return [=] {
    sgemm(kRowMajor, transposition(p.a_by_columns), transposition(p.b_by_columns), m, n, k, 1.0F,
          p.a, p.a_by_columns ? m : k, p.b, p.b_by_columns ? k : n, 0.0F, p.c, n);
  };
}

std::string peers_folder() {
#ifdef FORETUNE_PEERS_FOLDER
  return FORETUNE_PEERS_FOLDER;
#else
  return "build/peers";
#endif
}

Peers load_peers(int threads) {
  Peers peers;
  const auto add = [&](const char* name, Result<std::unique_ptr<Peer>> peer) {
    if (peer) {
      peers.found.push_back(*std::move(peer));
    } else {
      peers.missing.push_back(concat(name, ": ", peer.error().message));
    }
  };
  const auto add_built = [&](const char* name, std::unique_ptr<Peer> peer) {
    if (peer != nullptr) {
      peers.found.push_back(std::move(peer));
    } else {
      peers.missing.push_back(concat(name, ": not found when this was built"));
    }
  };
  add("MKL", load_mkl(threads));
  add("oneDNN", load_onednn(threads));
  add_built("oneDNN's matmul primitive", make_onednn_matmul(threads));
  add("OpenBLAS", load_openblas(threads));
  add("BLIS", load_blis(threads));
  if (threads == 1) {  // its kernels use one
    add_built("LIBXSMM", make_libxsmm());
  }
  return peers;
}

}  // namespace foretune
