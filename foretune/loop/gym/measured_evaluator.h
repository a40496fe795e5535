// The speed of schedules by measuring them as every family is measured: compiled, verified and
// timed by the protocol of docs/measuring.md, in this process.
//
//   FORETUNE_TRY(const auto measured,
//                MeasuredEvaluator::create(computation, {.isa = CpuIsa::kAvx2}));
//   CachedEvaluator cached(*measured);
//
// Thread safety: one thread at a time. Cost: some 0.5 ms for a new schedule that takes 20 us a run;
// the first one computes the expected results as well.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/gym/evaluator.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"

namespace foretune::loop::gym {

class MeasuredEvaluator final : public Evaluator {
 public:
  // Errors: those of make_nest_bench().
  static Result<std::unique_ptr<MeasuredEvaluator>> create(const Computation& computation,
                                                           LoopNestOptions options = {});

  // One that is clearly slower than the fastest so far is stopped early; its time is then the
  // shortest that it may take.
  Evaluated evaluate(const Nest& nest) override;

 private:
  MeasuredEvaluator(const Computation& computation, NestBench bench,
                    std::unique_ptr<ScheduleSpace> space);

  double flops_;
  NestBench bench_;
  std::unique_ptr<ScheduleSpace> space_;
  std::unique_ptr<Measurer> measurer_;
  double fastest_ns_ = -1;
};

}  // namespace foretune::loop::gym
