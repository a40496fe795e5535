#include "foretune/graph/run/executor.h"

#include <memory>
#include <string>
#include <utility>

#include "foretune/dispatch/default_models.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/hardware/cpu.h"

namespace foretune::graph {

namespace {

Result<std::unique_ptr<ConvDispatcher>> make_convolutions(const CpuFacts& facts, CpuIsa isa,
                                                          int threads,
                                                          const DispatchOptions& dispatch) {
  if (isa == facts.isa) {
    return ConvDispatcher::for_this_cpu({.threads = threads, .dispatch = dispatch});
  }
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(facts, CpuPeaks{});
  options.threads = threads;
  options.parameters = {{"isa", std::string(to_string(isa))}};
  FORETUNE_TRY(std::shared_ptr<const CpuConv> family, create_cpu_conv(options));
  auto dispatcher = std::make_unique<ConvDispatcher>(dispatch);
  FORETUNE_TRY_STATUS(
      dispatcher->add(family, default_cpu_model(family->info().name, isa, threads)));
  return dispatcher;
}

}  // namespace

Result<std::shared_ptr<Executor>> Executor::create(const ExecutorOptions& options) {
  const CpuFacts facts = read_cpu_facts();
  if (options.threads < 0 || options.threads > facts.cores) {
    return fail(ErrorCode::kInvalidArgument, "a network cannot run in ", options.threads,
                " threads on ", facts.cores, " cores");
  }
  const CpuIsa isa = options.isa.value_or(facts.isa);
  if (isa > facts.isa) {
    return fail(ErrorCode::kInvalidArgument, "this CPU has no ", to_string(isa));
  }
  // The dispatchers' trials take turns inside of calls; a plan makes as many calls as they need.
  const DispatchOptions dispatch{.measure_top = options.measure_top};
  std::shared_ptr<Executor> executor(new Executor);
  executor->threads_ = options.threads == 0 ? facts.cores : options.threads;
  executor->measure_top_ = options.measure_top;
  executor->loops_ = &vector_ops(isa);
  executor->cache_bytes_ = facts.l2_bytes;
  FORETUNE_TRY(executor->convolutions_, make_convolutions(facts, isa, 1, dispatch));
  if (executor->threads_ > 1) {
    FORETUNE_TRY(executor->wide_, make_convolutions(facts, isa, executor->threads_, dispatch));
  }
  FORETUNE_TRY(executor->products_, GemmDispatcher::for_this_cpu({.threads = 1}));
  return executor;
}

}  // namespace foretune::graph
