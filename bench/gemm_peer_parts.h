// Helpers of the files that load peers.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bench/gemm_peers.h"
#include "foretune/base/result.h"
#include "foretune/base/text.h"

namespace foretune {

// A shared library and its functions, by name.
class PeerLibrary {
 public:
  // Opens the first of the names that can be opened.
  static Result<PeerLibrary> open(std::span<const std::string> names, int flags = RTLD_LOCAL) {
    std::string error;
    for (const std::string& name : names) {
      if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | flags); handle != nullptr) {
        return PeerLibrary(handle);
      }
      error = ::dlerror();  // NOLINT(concurrency-mt-unsafe): before any thread
    }
    return fail(ErrorCode::kNotFound, error);
  }
  // Returns null when the library has no such function.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  explicit PeerLibrary(void* handle) : handle_(handle) {}
  void* handle_;  // never closed: the libraries' threads live on
};

// A peer made of two functions.
class LoadedPeer final : public Peer {
 public:
  using Prepare = std::function<std::function<void()>(const PeerProduct&)>;
  LoadedPeer(std::string name, std::string library, Prepare plan, Prepare call)
      : name_(std::move(name)),
        library_(std::move(library)),
        plan_(std::move(plan)),
        call_(std::move(call)) {}
  std::string name() const override { return name_; }
  std::string library() const override { return library_; }
  std::function<void()> plan(const PeerProduct& product) override { return plan_(product); }
  std::function<void()> call(const PeerProduct& product) override { return call_(product); }

 private:
  std::string name_;
  std::string library_;
  Prepare plan_;
  Prepare call_;
};

// Returns a function that calls cblas_sgemm with the arguments of the product's layouts.
using CblasSgemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k,
                        float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                        float* c, int ldc);
std::function<void()> cblas_call(CblasSgemm* sgemm, const PeerProduct& product);

// MKL, on GCC's OpenMP or without threads, and its name with the version.
struct Mkl {
  PeerLibrary library;
  std::string name;
};
Result<Mkl> open_mkl(int threads);
Result<std::unique_ptr<Peer>> load_mkl(int threads);
// dnnl_sgemm of the current wheel, on TBB's threads.
Result<std::unique_ptr<Peer>> load_onednn(int threads);

// Found when the benchmarks are built; null when they were built without it.
std::unique_ptr<Peer> make_libxsmm();
// oneDNN's matmul primitive, created once per product, on OpenMP's threads.
std::unique_ptr<Peer> make_onednn_matmul(int threads);

}  // namespace foretune
