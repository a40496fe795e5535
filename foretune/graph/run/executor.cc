#include "foretune/graph/run/executor.h"

#include <memory>

#include "foretune/hardware/cpu.h"

namespace foretune::graph {

Result<std::shared_ptr<Executor>> Executor::create(const ExecutorOptions& options) {
  const CpuFacts facts = read_cpu_facts();
  if (options.threads < 0 || options.threads > facts.cores) {
    return fail(ErrorCode::kInvalidArgument, "a network cannot run in ", options.threads,
                " threads on ", facts.cores, " cores");
  }
  // The dispatchers' trials take turns inside of calls; a plan makes as many calls as they need.
  const DispatchOptions dispatch{.measure_top = options.measure_top};
  std::shared_ptr<Executor> executor(new Executor);
  executor->threads_ = options.threads == 0 ? facts.cores : options.threads;
  executor->measure_top_ = options.measure_top;
  executor->loops_ = &vector_ops(facts.isa);
  executor->cache_bytes_ = facts.l2_bytes;
  FORETUNE_TRY(executor->convolutions_,
               ConvDispatcher::for_this_cpu({.threads = 1, .dispatch = dispatch}));
  if (executor->threads_ > 1) {
    FORETUNE_TRY(executor->wide_, ConvDispatcher::for_this_cpu(
                                      {.threads = executor->threads_, .dispatch = dispatch}));
  }
  FORETUNE_TRY(executor->products_, GemmDispatcher::for_this_cpu({.threads = 1}));
  return executor;
}

}  // namespace foretune::graph
