// The kernels that plans of networks share: the dispatchers of convolutions and products, and the
// loops of everything else.
//
//   FORETUNE_TRY(const auto executor, Executor::create({.threads = 1}));
//   FORETUNE_TRY(const auto plan, NetworkPlan::create(network, executor, {.images = 64}));
//
// Thread safety: any number of threads. Cost: making one reads the shipped models (milliseconds).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "foretune/base/result.h"
#include "foretune/dispatch/conv_dispatch.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/graph/run/vector_ops.h"

namespace foretune::graph {

struct ExecutorOptions {
  int threads = 1;      // 0: all cores that this process may use
  int measure_top = 0;  // above 1, plans time so many configs of a layer when they are made
  // Uses no wider instructions than these, to measure what a lesser machine would do; nothing: all
  // that this CPU has.
  std::optional<CpuIsa> isa;
};

class Executor {
 public:
  // Errors: kInvalidArgument for more threads than cores, and for instructions that this CPU lacks.
  static Result<std::shared_ptr<Executor>> create(const ExecutorOptions& options);

  // Runs layers of one thread; threads share out images.
  [[nodiscard]] ConvDispatcher& convolutions() { return *convolutions_; }
  [[nodiscard]] GemmDispatcher& products() { return *products_; }
  // Runs layers of all threads, for single images. The same as convolutions() with one thread.
  [[nodiscard]] ConvDispatcher& wide_convolutions() {
    return wide_ == nullptr ? *convolutions_ : *wide_;
  }
  [[nodiscard]] const VectorOps& loops() const { return *loops_; }
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] int measure_top() const { return measure_top_; }
  [[nodiscard]] std::int64_t cache_bytes() const { return cache_bytes_; }

 private:
  Executor() = default;
  std::unique_ptr<ConvDispatcher> convolutions_;
  std::unique_ptr<ConvDispatcher> wide_;
  std::unique_ptr<GemmDispatcher> products_;
  const VectorOps* loops_ = nullptr;
  int threads_ = 1;
  int measure_top_ = 0;
  std::int64_t cache_bytes_ = 0;
};

}  // namespace foretune::graph
