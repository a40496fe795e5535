// One computation that schedules are sought for: its evaluator, which any number of threads may
// ask, and the best that is known of it.
//
//   FORETUNE_TRY(const auto task, NestTask::create(computation, {.isa = CpuIsa::kAvx512}, 110.0));
//   const double speed = task->log_share(nest);     // ln(GFLOP/s over the peak)
//
// Thread safety: any number of threads; measurements of one task take turns, so that several tasks
// keep several threads busy. Cost: that of the evaluator for a new nest, else below a microsecond.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/gym/evaluator.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/policy_observation.h"

namespace foretune::loop::gym {

// A nest and ln of its share of the peak.
struct ScoredNest {
  Nest nest;
  double log_share = 0;
};

class NestTask {
 public:
  // The evaluator is of this computation and unit. Errors: kInvalidArgument for a peak that is not
  // above 0, and those of Computation::check().
  static Result<std::unique_ptr<NestTask>> create(Computation computation, const VectorUnit& unit,
                                                  std::unique_ptr<Evaluator> evaluator,
                                                  double peak_gflops,
                                                  const PolicyMachine& machine = {});
  // Measures in this process. Errors: those of MeasuredEvaluator::create().
  static Result<std::unique_ptr<NestTask>> measured(const Computation& computation, CpuIsa isa,
                                                    double peak_gflops,
                                                    const PolicyMachine& machine = {});

  // Returns ln(GFLOP/s over the peak); nothing where the evaluator refused. A nest that is to be
  // the best is evaluated twice, and the slower time counts: a policy would live on a lucky one.
  std::optional<double> log_share(const Nest& nest);

  [[nodiscard]] const Computation& computation() const { return computation_; }
  [[nodiscard]] const VectorUnit& unit() const { return unit_; }
  [[nodiscard]] const LoopActions& actions() const { return actions_; }
  [[nodiscard]] const PolicyObserver& observer() const { return observer_; }
  // The fastest so far; nothing before the first that was not refused.
  [[nodiscard]] std::optional<ScoredNest> best() const;
  // Every nest that was evaluated since the last call, refused ones left out.
  [[nodiscard]] std::vector<ScoredNest> take_evaluated();
  // How many nests the evaluator was asked for.
  [[nodiscard]] std::uint64_t evaluations() const;

 private:
  NestTask(Computation computation, const VectorUnit& unit, std::unique_ptr<Evaluator> evaluator,
           double peak_gflops, const PolicyMachine& machine);

  Computation computation_;
  VectorUnit unit_;
  LoopActions actions_;
  PolicyObserver observer_;
  std::unique_ptr<Evaluator> evaluator_;
  double peak_gflops_;
  mutable std::mutex mutex_;  // of all below, and of the evaluator
  CachedEvaluator cache_;
  std::optional<ScoredNest> best_;
  std::vector<ScoredNest> evaluated_;
};

}  // namespace foretune::loop::gym
