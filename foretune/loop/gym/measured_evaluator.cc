#include "foretune/loop/gym/measured_evaluator.h"

#include <utility>

namespace foretune::loop::gym {
namespace {

// The environment has a limit of its own.
constexpr std::size_t kMostLoops = 64;

}  // namespace

MeasuredEvaluator::MeasuredEvaluator(const Computation& computation, NestBench bench,
                                     std::unique_ptr<ScheduleSpace> space)
    : flops_(computation.flops()),
      bench_(std::move(bench)),
      space_(std::move(space)),
      measurer_(make_local_measurer(bench_.family, Protocol::brief(bench_.family->info()),
                                    {.threads = 1})) {}

Result<std::unique_ptr<MeasuredEvaluator>> MeasuredEvaluator::create(const Computation& computation,
                                                                     LoopNestOptions options) {
  options.max_loops = kMostLoops;
  FORETUNE_TRY(NestBench bench, make_nest_bench(computation, std::move(options)));
  auto space = ScheduleSpace::of_loops(computation, VectorUnit::of(CpuIsa::kAvx2));
  return std::unique_ptr<MeasuredEvaluator>(
      new MeasuredEvaluator(computation, std::move(bench), std::move(space)));
}

Evaluated MeasuredEvaluator::evaluate(const Nest& nest) {
  const Measurement measured =
      measurer_->measure({.problem = bench_.problem,
                          .config = space_->config({.nest = nest, .cursor = 0}),
                          .incumbent_ns = fastest_ns_});
  const MetricValue* const time = measured.find(kTimeNs);
  Evaluated out;
  if ((measured.outcome != Outcome::kOk && measured.outcome != Outcome::kCensored) ||
      time == nullptr) {
    out.reason = measured.reason;
    return out;
  }
  if (measured.outcome == Outcome::kOk && (fastest_ns_ < 0 || time->value < fastest_ns_)) {
    fastest_ns_ = time->value;
  }
  out.ok = true;
  out.seconds = 1e-9 * time->value;
  out.gflops = flops_ / time->value;
  return out;
}

}  // namespace foretune::loop::gym
