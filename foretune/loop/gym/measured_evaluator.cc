#include "foretune/loop/gym/measured_evaluator.h"

#include <utility>

#include "foretune/hardware/cpu.h"
#include "foretune/measure/dataset_header.h"

namespace foretune::loop::gym {
namespace {

// The environment has a limit of its own.
constexpr std::size_t kMaxLoops = 64;

Result<NestBench> bench_of(const Computation& computation, LoopNestOptions options) {
  options.max_loops = kMaxLoops;
  return make_nest_bench(computation, std::move(options), 1,
                         cpu_fingerprint(read_cpu_facts(), CpuPeaks{}));
}

Status check_described(const NestBench& bench, const Computation& computation) {
  if (!bench.is_described) {
    return fail(ErrorCode::kUnsupported, "'", computation.name,
                "' is a problem of no type, so what is known of it cannot be stored");
  }
  return {};
}

Context context_of(const FamilyInfo& info) {
  return {.machine = info.fingerprint.digest(), .device = info.fingerprint.device, .threads = 1};
}

}  // namespace

MeasuredEvaluator::MeasuredEvaluator(const Computation& computation, NestBench bench,
                                     std::unique_ptr<ScheduleSpace> space,
                                     std::shared_ptr<KnownMeasurements> known)
    : flops_(computation.flops()),
      bench_(std::move(bench)),
      space_(std::move(space)),
      measurer_(make_local_measurer(bench_.family, Protocol::brief(bench_.family->info()),
                                    context_of(bench_.family->info()))) {
  if (known != nullptr) {
    auto measurer = std::make_unique<KnownMeasurer>(std::move(measurer_), std::move(known));
    known_ = measurer.get();
    measurer_ = std::move(measurer);
  }
}

Result<std::unique_ptr<MeasuredEvaluator>> MeasuredEvaluator::create(
    const Computation& computation, LoopNestOptions options,
    std::shared_ptr<KnownMeasurements> known) {
  FORETUNE_TRY(NestBench bench, bench_of(computation, std::move(options)));
  if (known != nullptr) {
    FORETUNE_TRY_STATUS(check_described(bench, computation));
    if (known->problem_type() != bench.problem.type()) {
      return fail(ErrorCode::kMismatch, "the file of known schedules holds other problems than '",
                  computation.name, "'; it is for one type");
    }
  }
  auto space = ScheduleSpace::of_loops(computation, VectorUnit::of(CpuIsa::kAvx2));
  return std::unique_ptr<MeasuredEvaluator>(
      new MeasuredEvaluator(computation, std::move(bench), std::move(space), std::move(known)));
}

Result<std::shared_ptr<KnownMeasurements>> MeasuredEvaluator::open_known(
    const std::filesystem::path& path, const Computation& computation, LoopNestOptions options) {
  FORETUNE_TRY(const NestBench bench, bench_of(computation, std::move(options)));
  FORETUNE_TRY_STATUS(check_described(bench, computation));
  DatasetHeader header = header_of(bench.family->info());
  header.created_by = "loop nest environment";
  return KnownMeasurements::open(path, header);
}

std::uint64_t MeasuredEvaluator::known_answers() const {
  return known_ == nullptr ? 0 : known_->hits();
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
