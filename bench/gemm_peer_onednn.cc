// oneDNN's matmul primitive as a peer, created once per product, as its users do. The current wheel
// runs primitives on SYCL's queues, which take longer than most products, so this uses the newest
// build that runs them on OpenMP's threads.
#include <memory>
#include <unordered_map>

#include "bench/gemm_peer_parts.h"

#ifdef FORETUNE_HAS_ONEDNN
#include <dnnl.hpp>

// Declared here because not every compiler has the header of the library's OpenMP runtime.
extern "C" void omp_set_num_threads(int threads);  // NOLINT(readability-identifier-naming)
#endif

namespace foretune {

#ifdef FORETUNE_HAS_ONEDNN

std::unique_ptr<Peer> make_onednn_matmul(int threads) {
  omp_set_num_threads(threads);
#if DNNL_VERSION_MAJOR < 3
  return nullptr;
#else
  const auto plan = [](const PeerProduct& p) -> std::function<void()> {
    using dnnl::memory;
    const auto described = [](std::ptrdiff_t rows, std::ptrdiff_t columns, bool by_columns) {
      return memory::desc({rows, columns}, memory::data_type::f32,
                          by_columns ? memory::format_tag::ba : memory::format_tag::ab);
    };
    try {
      const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
      auto stream = std::make_shared<dnnl::stream>(engine);
      const memory::desc a = described(p.m, p.k, p.a_by_columns);
      const memory::desc b = described(p.k, p.n, p.b_by_columns);
      const memory::desc c = described(p.m, p.n, false);
      const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(a, engine, p.a)},
                                                      {DNNL_ARG_WEIGHTS, memory(b, engine, p.b)},
                                                      {DNNL_ARG_DST, memory(c, engine, p.c)}};
      return
          [stream, arguments, run = dnnl::matmul(dnnl::matmul::primitive_desc(engine, a, b, c))] {
            run.execute(*stream, arguments);
            stream->wait();
          };
    } catch (const dnnl::error&) {
      return {};
    }
  };
  const auto no_call = [](const PeerProduct&) { return std::function<void()>(); };
  return std::make_unique<LoadedPeer>(concat("oneDNN ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR,
                                             ".", DNNL_VERSION_PATCH, " (matmul primitive)"),
                                      "onednn", plan, no_call);
#endif
}

#else

std::unique_ptr<Peer> make_onednn_matmul(int /*threads*/) { return nullptr; }

#endif

}  // namespace foretune
