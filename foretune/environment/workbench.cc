#include "foretune/environment/workbench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace foretune::environment {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Workbench::Workbench(loop::Operands operands, const loop::VectorUnit& unit)
    : operands_(std::move(operands)), jit_(unit) {}

Result<std::unique_ptr<Workbench>> Workbench::create(loop::Computation computation,
                                                     const loop::VectorUnit& unit) {
  FORETUNE_TRY_STATUS(computation.check());
  FORETUNE_TRY(loop::Operands operands, loop::Operands::create(std::move(computation), 1));
  return std::unique_ptr<Workbench>(new Workbench(std::move(operands), unit));
}

Result<std::function<void()>> Workbench::compile(const loop::Nest& nest, ThreadPool* pool) {
  FORETUNE_TRY(loop::Kernel made, jit_.compile(computation(), nest));
  auto kernel = std::make_shared<loop::Kernel>(std::move(made));
  FORETUNE_TRY(loop::Kernel::Workspace room,
               kernel->make_workspace(pool == nullptr ? 1 : pool->threads()));
  auto workspace = std::make_shared<loop::Kernel::Workspace>(std::move(room));
  return [this, kernel, workspace, pool] {
    kernel->run(operands_.inputs(), operands_.output().view(), *workspace, pool);
  };
}

Result<std::function<void()>> Workbench::prepare(const loop::Nest& nest, ThreadPool* pool) {
  FORETUNE_TRY(std::function<void()> run, compile(nest, pool));
  poison();
  run();
  FORETUNE_TRY_STATUS(verify());
  return run;
}

Status Workbench::verify() {
  const std::string wrong = operands_.wrong_output(jit_);
  return wrong.empty() ? Status() : fail(ErrorCode::kInternal, computation().name, ": ", wrong);
}

Stopwatch::Stopwatch(Workbench& workbench, StopwatchOptions options)
    : workbench_(&workbench), options_(std::move(options)) {
  if (!options_.now_seconds) {
    options_.now_seconds = steady_seconds;
  }
}

Evaluated Stopwatch::evaluate(const loop::Nest& nest) {
  Evaluated evaluated;
  const auto run = workbench_->compile(nest);
  if (!run) {
    evaluated.reason = run.error().message;
    return evaluated;
  }
  const auto timed = [&](int runs) {
    const double begin = options_.now_seconds();
    for (int i = 0; i < runs; ++i) {
      (*run)();
    }
    return (options_.now_seconds() - begin) / runs;
  };
  workbench_->poison();
  double best = timed(1);
  if (const Status right = workbench_->verify(); !right) {
    evaluated.reason = right.error().message;
    return evaluated;
  }
  for (int window = 0; window < options_.windows && best < options_.give_up * fastest_seconds_;
       ++window) {
    const double runs = options_.window_seconds / std::max(best, 1e-9);
    best = std::min(best, timed(std::max(1, static_cast<int>(runs))));
  }
  fastest_seconds_ = std::min(fastest_seconds_, best);
  evaluated.ok = true;
  evaluated.seconds = best;
  evaluated.gflops = workbench_->computation().flops() / best / 1e9;
  return evaluated;
}

}  // namespace foretune::environment
