#include "foretune/environment/workbench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/expected_outputs.h"

namespace foretune::environment {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Workbench::Workbench(loop::Computation computation, const loop::VectorUnit& unit)
    : computation_(std::move(computation)), jit_(unit) {}

Result<std::unique_ptr<Workbench>> Workbench::create(loop::Computation computation,
                                                     const loop::VectorUnit& unit) {
  FORETUNE_TRY_STATUS(computation.check());
  std::unique_ptr<Workbench> bench(new Workbench(std::move(computation), unit));
  Rng rng(1);
  for (const std::vector<float>& values : loop::whole_inputs(bench->computation_, rng)) {
    FORETUNE_TRY(AlignedBuffer buffer, AlignedBuffer::create(values.size()));
    std::copy(values.begin(), values.end(), buffer.data());
    bench->inputs_.push_back(std::move(buffer));
  }
  for (const AlignedBuffer& input : bench->inputs_) {
    bench->views_.push_back(input.view());
  }
  FORETUNE_TRY(
      bench->output_,
      AlignedBuffer::create(static_cast<std::size_t>(bench->computation_.output.elements())));
  return bench;
}

Result<std::function<void()>> Workbench::compile(const loop::Nest& nest, ThreadPool* pool) {
  FORETUNE_TRY(loop::Kernel made, jit_.compile(computation_, nest));
  auto kernel = std::make_shared<loop::Kernel>(std::move(made));
  FORETUNE_TRY(loop::Kernel::Workspace room,
               kernel->make_workspace(pool == nullptr ? 1 : pool->threads()));
  auto workspace = std::make_shared<loop::Kernel::Workspace>(std::move(room));
  return [this, kernel, workspace, pool] { kernel->run(views_, output_.view(), *workspace, pool); };
}

void Workbench::poison() {
  std::fill(output_.view().begin(), output_.view().end(), std::numeric_limits<float>::quiet_NaN());
}

Result<std::function<void()>> Workbench::prepare(const loop::Nest& nest, ThreadPool* pool) {
  FORETUNE_TRY(std::function<void()> run, compile(nest, pool));
  poison();
  run();
  FORETUNE_TRY_STATUS(verify());
  return run;
}

Status Workbench::verify() {
  if (expected_.empty()) {
    expected_ = loop::expected_outputs(computation_, views_, jit_);
  }
  const std::string wrong = loop::difference(computation_, expected_, output_.view());
  return wrong.empty() ? Status() : fail(ErrorCode::kInternal, computation_.name, ": ", wrong);
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
