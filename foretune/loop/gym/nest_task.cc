#include "foretune/loop/gym/nest_task.h"

#include <algorithm>
#include <cmath>

#include "foretune/loop/gym/measured_evaluator.h"

namespace foretune::loop::gym {
namespace {

// As many as stored schedules have.
constexpr std::size_t kStoredLoops = 10;

}  // namespace

NestTask::NestTask(Computation computation, const VectorUnit& unit,
                   std::unique_ptr<Evaluator> evaluator, double peak_gflops,
                   const PolicyMachine& machine)
    : computation_(std::move(computation)),
      unit_(unit),
      actions_(computation_, unit, {.max_loops = kStoredLoops}),
      observer_(computation_, unit, machine),
      evaluator_(std::move(evaluator)),
      peak_gflops_(peak_gflops),
      cache_(*evaluator_) {}

Result<std::unique_ptr<NestTask>> NestTask::create(Computation computation, const VectorUnit& unit,
                                                   std::unique_ptr<Evaluator> evaluator,
                                                   double peak_gflops,
                                                   const PolicyMachine& machine) {
  FORETUNE_TRY_STATUS(computation.check());
  if (!(peak_gflops > 0) || !std::isfinite(peak_gflops)) {
    return fail(ErrorCode::kInvalidArgument, "the peak is ", peak_gflops, " GFLOP/s");
  }
  return std::unique_ptr<NestTask>(
      new NestTask(std::move(computation), unit, std::move(evaluator), peak_gflops, machine));
}

Result<std::unique_ptr<NestTask>> NestTask::measured(const Computation& computation, CpuIsa isa,
                                                     double peak_gflops,
                                                     const PolicyMachine& machine) {
  FORETUNE_TRY(std::unique_ptr<MeasuredEvaluator> evaluator,
               MeasuredEvaluator::create(computation, {.isa = isa}));
  return create(computation, VectorUnit::of(isa), std::move(evaluator), peak_gflops, machine);
}

std::optional<double> NestTask::log_share(const Nest& nest) {
  const std::lock_guard lock(mutex_);
  Evaluated evaluated = cache_.evaluate(nest);
  double gflops = evaluated.counted_gflops();
  if (gflops <= 0) {
    return std::nullopt;
  }
  double share = std::log(gflops / peak_gflops_);
  if (!evaluated.was_cached) {
    if (!best_ || share > best_->log_share) {
      // The cache keeps the second time, and with it the more sober one of the two.
      const double first = share;
      cache_.forget(nest);
      evaluated = cache_.evaluate(nest);
      gflops = evaluated.counted_gflops();
      share = gflops > 0 ? std::min(first, std::log(gflops / peak_gflops_)) : first;
      if (!best_ || share > best_->log_share) {
        best_ = ScoredNest{.nest = nest, .log_share = share};
      }
    }
    evaluated_.push_back({.nest = nest, .log_share = share});
  }
  return share;
}

std::optional<ScoredNest> NestTask::best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

std::vector<ScoredNest> NestTask::take_evaluated() {
  const std::lock_guard lock(mutex_);
  return std::exchange(evaluated_, {});
}

std::uint64_t NestTask::evaluations() const {
  const std::lock_guard lock(mutex_);
  return cache_.misses();
}

}  // namespace foretune::loop::gym
