// The speed of schedules by measuring them as every family is measured: compiled, verified and
// timed by the protocol of docs/explanation/measuring.md, in this process.
//
//   FORETUNE_TRY(const auto measured,
//                MeasuredEvaluator::create(computation, {.isa = CpuIsa::kAvx2}));
//   CachedEvaluator cached(*measured);
//
// A file may keep what is known, the same that `foretune tune --cache` has:
//
//   FORETUNE_TRY(const auto known,
//                MeasuredEvaluator::open_known("nests.ftd", computation, options));
//   FORETUNE_TRY(const auto measured, MeasuredEvaluator::create(computation, options, known));
//
// Thread safety: one thread at a time; those that share a file may be in several threads. Cost:
// some 0.5 ms for a new schedule that takes 20 us a run; the first one computes the expected
// results as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "foretune/base/result.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/gym/evaluator.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/known_measurer.h"
#include "foretune/measure/measure.h"

namespace foretune::loop::gym {

class MeasuredEvaluator final : public Evaluator {
 public:
  // Errors: those of make_nest_bench(); with `known` also kUnsupported for a computation that no
  // problem type describes, and kMismatch for one of another type than the file's.
  static Result<std::unique_ptr<MeasuredEvaluator>> create(
      const Computation& computation, LoopNestOptions options = {},
      std::shared_ptr<KnownMeasurements> known = nullptr);
  // Opens or creates a file for computations of this one's type. Errors: those of create() and of
  // KnownMeasurements::open().
  static Result<std::shared_ptr<KnownMeasurements>> open_known(const std::filesystem::path& path,
                                                               const Computation& computation,
                                                               LoopNestOptions options = {});

  // One that is clearly slower than the fastest so far is stopped early; its time is then the
  // shortest that it may take.
  Evaluated evaluate(const Nest& nest) override;

  // How many schedules the file answered.
  [[nodiscard]] std::uint64_t known_answers() const;

 private:
  MeasuredEvaluator(const Computation& computation, NestBench bench,
                    std::unique_ptr<ScheduleSpace> space, std::shared_ptr<KnownMeasurements> known);

  double flops_;
  NestBench bench_;
  std::unique_ptr<ScheduleSpace> space_;
  std::unique_ptr<Measurer> measurer_;
  const KnownMeasurer* known_ = nullptr;  // the measurer, where there is a file
  double fastest_ns_ = -1;
};

}  // namespace foretune::loop::gym
