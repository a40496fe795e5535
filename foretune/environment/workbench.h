// A computation with operands, expected results and a compiler: what measuring schedules needs.
//
//   FORETUNE_TRY(const auto workbench, Workbench::create(computation, VectorUnit::of(isa)));
//   FORETUNE_TRY(const std::function<void()> run, workbench->prepare(nest));
//
// Thread safety: one thread at a time. Cost: the first verify() computes the expected outputs (see
// loop/expected_outputs.h); each compares all of them, some 2 ns an output.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/environment/evaluator.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/machine/operands.h"
#include "foretune/loop/nest.h"

namespace foretune::environment {

class Workbench {
 public:
  // Errors: kUnsupported when there is no memory for the operands; what check() says.
  static Result<std::unique_ptr<Workbench>> create(loop::Computation computation,
                                                   const loop::VectorUnit& unit);

  [[nodiscard]] const loop::Computation& computation() const { return operands_.computation(); }
  [[nodiscard]] const loop::Jit& jit() const { return jit_; }
  // Whole numbers, the same in every workbench of a computation; on cache lines.
  [[nodiscard]] AlignedBuffer& input(std::size_t i) { return operands_.input(i); }
  [[nodiscard]] AlignedBuffer& output() { return operands_.output(); }

  // What runs a schedule; it must not outlive the workbench. With a pool, parallel loops use its
  // threads. Errors: those of Jit::compile().
  Result<std::function<void()>> compile(const loop::Nest& nest, ThreadPool* pool = nullptr);
  // Fills the output with what no run leaves behind.
  void poison() { operands_.poison(); }
  // Whether every output is what it should be. Errors: kInternal with the first wrong place.
  Status verify();
  // All of these: compiled, run once and verified.
  Result<std::function<void()>> prepare(const loop::Nest& nest, ThreadPool* pool = nullptr);

 private:
  Workbench(loop::Operands operands, const loop::VectorUnit& unit);

  loop::Operands operands_;
  loop::Jit jit_;
};

struct StopwatchOptions {
  double window_seconds = 200e-6;  // of repeated runs; the fastest window counts
  int windows = 3;
  // A schedule whose first run takes so many times the fastest known is not run again.
  double give_up = 2;
  std::function<double()> now_seconds;  // monotonic; empty: std::chrono::steady_clock
};

// Evaluates by compiling, verifying and timing: a schedule with a wrong result is never ok.
class Stopwatch final : public Evaluator {
 public:
  // `workbench` has to outlive it.
  explicit Stopwatch(Workbench& workbench, StopwatchOptions options = {});
  Evaluated evaluate(const loop::Nest& nest) override;

 private:
  Workbench* workbench_;
  StopwatchOptions options_;
  double fastest_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace foretune::environment
