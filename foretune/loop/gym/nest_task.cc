#include "foretune/loop/gym/nest_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/loop/gym/measured_evaluator.h"

namespace foretune::loop::gym {
namespace {

// As many as stored schedules have.
constexpr std::size_t kStoredLoops = 10;

std::size_t loops_of(const Nest& nest) { return std::min(nest.loops.size(), LoopActions::kLevels); }

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
      ids_(0, Hasher{&nests_}, Equal{&nests_}) {}

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
                                                     const PolicyMachine& machine,
                                                     std::shared_ptr<KnownMeasurements> known) {
  FORETUNE_TRY(std::unique_ptr<MeasuredEvaluator> evaluator,
               MeasuredEvaluator::create(computation, {.isa = isa}, std::move(known)));
  return create(computation, VectorUnit::of(isa), std::move(evaluator), peak_gflops, machine);
}

std::optional<double> NestTask::evaluate(const Nest& nest) {
  const auto share_of = [&](const Evaluated& evaluated) {
    return std::log(evaluated.counted_gflops() / peak_gflops_);
  };
  double share = share_of(evaluator_->evaluate(nest));
  if (!std::isfinite(share)) {
    return std::nullopt;
  }
  if (!best_ || share > best_->log_share) {
    const double again = share_of(evaluator_->evaluate(nest));
    share = std::isfinite(again) ? std::min(share, again) : share;
    if (!best_ || share > best_->log_share) {
      best_ = ScoredNest{.nest = nest, .log_share = share};
    }
  }
  evaluated_.push_back({.nest = nest, .log_share = share});
  return share;
}

NestTask::Step NestTask::find_or_add(const Nest& nest) {
  if (const auto found = ids_.find(nest); found != ids_.end()) {
    return {.to = *found, .is_new = false, .log_share = known_[*found].log_share};
  }
  const auto id = static_cast<NestId>(nests_.size());
  const std::optional<double> log_share = evaluate(nest);
  nests_.push_back(nest);
  known_.push_back({.log_share = log_share, .loops = loops_of(nest), .seen = nullptr});
  ids_.insert(id);
  return {.to = id, .is_new = true, .log_share = log_share};
}

NestTask::Step NestTask::start() {
  const std::lock_guard lock(mutex_);
  if (!start_) {
    start_ = find_or_add(Nest::plain(computation_)).to;
  }
  return {.to = *start_, .is_new = false, .log_share = known_[*start_].log_share};
}

Result<NestTask::Step> NestTask::step(NestId from, std::size_t action) {
  const std::lock_guard lock(mutex_);
  if (const auto to = transitions_.find(from, action)) {
    return Step{.to = *to, .is_new = false, .log_share = known_[*to].log_share};
  }
  FORETUNE_TRY(const Nest nest, actions_.apply(nests_[from], action));
  const Step step = find_or_add(nest);
  transitions_.add(from, action, step.to);
  return step;
}

std::optional<double> NestTask::log_share(const Nest& nest) {
  const std::lock_guard lock(mutex_);
  return find_or_add(nest).log_share;
}

Nest NestTask::nest(NestId id) const {
  const std::lock_guard lock(mutex_);
  return nests_[id];
}

void NestTask::look(const Nest& nest, std::span<float> loops, std::span<float> whole,
                    std::span<std::uint8_t> mask) const {
  std::array<float, PolicyObserver::kLoopFloats> all_loops{};
  std::array<std::uint8_t, LoopActions::kCount> all_actions{};
  observer_.observe(nest, 0, all_loops, whole);
  actions_.write_mask(nest, all_actions);
  const std::size_t count = loops_of(nest);
  std::copy_n(all_loops.begin(), count * PolicyObserver::kLoopColumns, loops.begin());
  std::copy_n(all_actions.begin(), count * LoopActions::kOperations, mask.begin());
}

std::size_t NestTask::observe(NestId id, double steps_left, std::span<float> loops,
                              std::span<float> whole, std::span<std::uint8_t> mask) {
  FORETUNE_DCHECK(loops.size() == PolicyObserver::kLoopFloats &&
                  whole.size() == PolicyObserver::kWholeColumns &&
                  mask.size() == LoopActions::kCount);
  const std::lock_guard lock(mutex_);
  Known& known = known_[id];
  const std::size_t loop_bytes = known.loops * PolicyObserver::kLoopColumns * sizeof(float);
  const std::size_t whole_bytes = PolicyObserver::kWholeColumns * sizeof(float);
  const std::size_t mask_bytes = known.loops * LoopActions::kOperations;
  if (known.seen == nullptr) {
    look(nests_[id], loops, whole, mask);
    if (id < kSeenNests) {
      known.seen = std::make_unique<std::byte[]>(loop_bytes + whole_bytes + mask_bytes);
      std::memcpy(known.seen.get(), loops.data(), loop_bytes);
      std::memcpy(known.seen.get() + loop_bytes, whole.data(), whole_bytes);
      std::memcpy(known.seen.get() + loop_bytes + whole_bytes, mask.data(), mask_bytes);
    }
  } else {
    std::memcpy(loops.data(), known.seen.get(), loop_bytes);
    std::memcpy(whole.data(), known.seen.get() + loop_bytes, whole_bytes);
    std::memcpy(mask.data(), known.seen.get() + loop_bytes + whole_bytes, mask_bytes);
  }
  PolicyObserver::set_steps_left(steps_left, whole);
  mask[LoopActions::kStop] = 1;
  return known.loops;
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
  return nests_.size();
}

}  // namespace foretune::loop::gym
