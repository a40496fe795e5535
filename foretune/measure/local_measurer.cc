#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/hardware/energy_meter.h"
#include "foretune/measure/cache_evictor.h"
#include "foretune/measure/energy.h"
#include "foretune/measure/measure.h"
#include "foretune/measure/timing.h"

namespace foretune {
namespace {

// The number of prepared artifacts kept for other problems: enough for every config of a large
// Triton space.
constexpr std::size_t kMaxArtifacts = 1024;
// How often load and clock are read from the system: reading them takes longer than a short kernel.
constexpr std::int64_t kConditionsPeriodNs = 1'000'000'000;
constexpr double kThrottledShare = 0.9;
// The time of the runs of a device between two readings of its meter.
constexpr double kDeviceBatchNs = 2e7;
// How often a bind that packs is repeated: for this long, within these bounds.
constexpr std::size_t kMinBindings = 3;
constexpr std::size_t kMaxBindings = 25;
constexpr double kBindingsNs = 2e6;
constexpr std::string_view kRecordedBound = "recorded as a lower bound";

Outcome outcome_of(const Error& error) {
  return error.code == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kPrepareFailed;
}

Outcome outcome_of(RunFailure::Kind kind) {
  switch (kind) {
    case RunFailure::Kind::kTimedOut:
      return Outcome::kTimedOut;
    case RunFailure::Kind::kWrongResult:
      return Outcome::kWrongResult;
    case RunFailure::Kind::kCrashed:
      break;
  }
  return Outcome::kCrashed;
}

// Adds the metrics that a family reports of a run, except the time, which is measured here, and
// values or spreads that are not finite.
void add_values(std::vector<MetricValue> values, Measurement& measurement) {
  for (MetricValue& value : values) {
    if (value.metric != kTimeNs && value.metric != kMedianNs && std::isfinite(value.value) &&
        std::isfinite(value.spread)) {
      measurement.metrics.push_back(std::move(value));
    }
  }
}

class LocalMeasurer final : public Measurer {
 public:
  LocalMeasurer(std::shared_ptr<const Family> family, const Protocol& protocol, Context context,
                const MeasureHooks& hooks)
      : family_(std::move(family)),
        protocol_(protocol),
        context_(std::move(context)),
        hooks_(hooks) {
    context_.cache = protocol_.cache;
    if (!hooks_.read_waits && !hooks_.now_ns) {
      waits_ = std::make_unique<ThreadWaits>();
      if (waits_->known()) {
        hooks_.read_waits = [this] { return waits_->read(); };
      }
    }
    if (!hooks_.now_ns) {
      hooks_.now_ns = [] {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
      };
    }
    if (!hooks_.read_load) {
      hooks_.read_load = [meter = CpuLoadMeter()]() mutable { return meter.read(); };
    }
  }

  Measurement measure(const Request& request) override;
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override;
  const Context& context() const override { return context_; }

 private:
  // Holds the things that the current problem needs, made once.
  struct Current {
    Problem problem;
    std::unique_ptr<Space> space;
    std::unique_ptr<ProblemData> data;
    Error error;  // why there is no data
    Outcome outcome = Outcome::kOk;
  };
  // A run, and the artifact that it may refer to even when the cache has dropped it.
  struct Bound {
    std::shared_ptr<Artifact> artifact;
    std::unique_ptr<Run> run;
  };
  // Holds one config of a comparison.
  struct Contestant {
    Bound bound;
    std::optional<RunTimer> timer;
    std::vector<Window> windows;
  };

  void announce(std::size_t index, Stage stage) {
    stage_ = stage;
    if (hooks_.on_stage) {
      hooks_.on_stage(index, stage);
    }
  }
  void enter(const Problem& problem);
  Bound make_run(std::size_t index, Measurement& measurement);
  bool verified(std::size_t index, Measurement& measurement);
  bool refuse_failed(const Run& run, Stage stage, Measurement& measurement) const;
  Result<std::shared_ptr<Artifact>> artifact(const Problem& problem, const Config& config);
  void finish(Measurement& measurement, const std::vector<double>& windows_ns,
              double known_spread) const;
  void add_metrics(const Bound& bound, Measurement& measurement);
  std::optional<MetricValue> time_binding(const Bound& bound, const Problem& problem);
  void evaluate_into(const Request& request, Measurement& measurement);
  Result<MetricValue> energy_of(const Bound& bound);
  std::uint8_t conditions();
  void measure_into(const Request& request, Measurement& measurement);
  void enter_contest(std::size_t index, Contestant& contestant, Measurement& measurement);
  void leave_contest(std::size_t index, const Contestant& contestant, Measurement& measurement);

  std::shared_ptr<const Family> family_;
  Protocol protocol_;
  Context context_;
  MeasureHooks hooks_;
  std::optional<Current> current_;
  std::unordered_map<std::string, std::shared_ptr<Artifact>> artifacts_;
  std::deque<std::string> artifact_order_;
  std::unique_ptr<CacheEvictor> evictor_;
  std::function<void()> evict_;
  std::unique_ptr<ThreadWaits> waits_;
  Stage stage_ = Stage::kNone;
  std::optional<std::int64_t> conditions_read_ns_;
  std::uint8_t conditions_ = 0;
};

// Returns load and clock of the last second, as flags.
std::uint8_t LocalMeasurer::conditions() {
  if (family_->info().simulated) {
    return 0;
  }
  if (const std::optional<DeviceConditions> device = family_->conditions()) {
    return device->is_throttled ? kFlagThrottled : std::uint8_t{0};
  }
  const std::int64_t now_ns = hooks_.now_ns();
  if (conditions_read_ns_ && now_ns - *conditions_read_ns_ < kConditionsPeriodNs) {
    return conditions_;
  }
  conditions_read_ns_ = now_ns;
  const CpuLoad load = hooks_.read_load();
  conditions_ = 0;
  const double cores = family_->info().fingerprint.hardware.get(HardwareValue::kCores);
  // Where every window knows whether its threads had their cores, the work of other processes on
  // other cores does not matter. Threads do not notice what a hypervisor withholds.
  if (hooks_.read_waits ? load.is_withheld(cores) : load.is_disturbed(cores)) {
    conditions_ |= kFlagLoaded;
  }
  const double usual_mhz = family_->info().fingerprint.hardware.get(HardwareValue::kClockMhz);
  if (load.frequency_mhz > 0 && load.frequency_mhz < kThrottledShare * usual_mhz) {
    conditions_ |= kFlagThrottled;
  }
  return conditions_;
}

// Makes `problem` the current one: its space, inputs and (on first use) reference.
void LocalMeasurer::enter(const Problem& problem) {
  if (current_ && current_->problem == problem) {
    return;
  }
  // The old data goes first: two problems need not fit into memory together.
  current_.reset();
  Current next{problem, nullptr, nullptr, {}, Outcome::kOk};
  const Support support = family_->supports(problem);
  if (!support) {
    next.outcome = Outcome::kUnsupported;
    next.error = Error{ErrorCode::kUnsupported, support.reason()};
    current_ = std::move(next);
    return;
  }
  auto space = family_->space(problem);
  auto data = space ? family_->make_data(problem, protocol_.data_seed)
                    : Result<std::unique_ptr<ProblemData>>(tl::unexpected<Error>(space.error()));
  if (!data) {
    next.outcome = outcome_of(data.error());
    next.error = data.error();
  } else {
    next.space = *std::move(space);
    next.data = *std::move(data);
  }
  current_ = std::move(next);
}

Result<std::shared_ptr<Artifact>> LocalMeasurer::artifact(const Problem& problem,
                                                          const Config& config) {
  const std::string key = family_->artifact_key(problem, config);
  const auto found = artifacts_.find(key);
  if (found != artifacts_.end()) {
    return found->second;
  }
  FORETUNE_TRY(std::unique_ptr<Artifact> made, family_->prepare(problem, config));
  if (artifacts_.size() >= kMaxArtifacts) {
    artifacts_.erase(artifact_order_.front());
    artifact_order_.pop_front();
  }
  artifact_order_.push_back(key);
  return artifacts_.emplace(key, std::move(made)).first->second;
}

// Does everything before the first run; returns no run when the measurement is over already.
LocalMeasurer::Bound LocalMeasurer::make_run(std::size_t index, Measurement& measurement) {
  announce(index, Stage::kPrepare);
  enter(measurement.problem);
  if (hooks_.on_data_ready) {
    hooks_.on_data_ready();
  }
  if (!current_->data) {
    refuse(measurement, current_->outcome, Stage::kPrepare, current_->error.message);
    return {};
  }
  const Support legal = current_->space->why_not(measurement.config);
  if (!legal) {
    refuse(measurement, Outcome::kUnsupported, Stage::kNone, legal.reason());
    return {};
  }
  Result<std::shared_ptr<Artifact>> prepared = artifact(measurement.problem, measurement.config);
  if (!prepared) {
    refuse(measurement, outcome_of(prepared.error()), Stage::kPrepare, prepared.error().message);
    return {};
  }
  announce(index, Stage::kBind);
  Result<std::unique_ptr<Run>> run = (*prepared)->bind(measurement.problem, *current_->data);
  if (!run) {
    refuse(measurement, outcome_of(run.error()), Stage::kBind, run.error().message);
    return {};
  }
  if (protocol_.cache == CacheState::kCold && !evictor_ && !family_->info().simulated &&
      (*run)->device_clock() == nullptr) {
    evictor_ = std::make_unique<CacheEvictor>(eviction_bytes(family_->info().fingerprint.hardware));
    evict_ = [this] { evictor_->evict(); };
  }
  return {*std::move(prepared), *std::move(run)};
}

// Returns true for a run that failed, which is then the measurement's outcome.
bool LocalMeasurer::refuse_failed(const Run& run, Stage stage, Measurement& measurement) const {
  std::optional<RunFailure> failure = run.failure();
  if (!failure) {
    return false;
  }
  refuse(measurement, outcome_of(failure->kind), stage, std::move(failure->reason));
  return true;
}

bool LocalMeasurer::verified(std::size_t index, Measurement& measurement) {
  if (!protocol_.verify) {
    return true;
  }
  announce(index, Stage::kVerify);
  const Support correct = current_->data->verify();
  if (!correct) {
    refuse(measurement, Outcome::kWrongResult, Stage::kVerify, correct.reason());
    return false;
  }
  return true;
}

void LocalMeasurer::finish(Measurement& measurement, const std::vector<double>& windows_ns,
                           double known_spread) const {
  measurement.metrics = timing_metrics(windows_ns, known_spread);
  if (protocol_.keep_samples) {
    measurement.samples_ns.assign(windows_ns.begin(), windows_ns.end());
  }
}

// Binds again and again, each time into memory of its own as a user would.
std::optional<MetricValue> LocalMeasurer::time_binding(const Bound& bound, const Problem& problem) {
  std::vector<double> times_ns;
  double total_ns = 0;
  while (times_ns.size() < kMinBindings ||
         (times_ns.size() < kMaxBindings && total_ns < kBindingsNs)) {
    const std::int64_t begin_ns = hooks_.now_ns();
    const Result<std::unique_ptr<Run>> again = bound.artifact->bind(problem, *current_->data);
    const auto time_ns = static_cast<double>(hooks_.now_ns() - begin_ns);
    if (!again) {
      return std::nullopt;
    }
    times_ns.push_back(time_ns);
    total_ns += time_ns;
  }
  return MetricValue(kPackNs, *std::min_element(times_ns.begin(), times_ns.end()),
                     relative_spread(times_ns), static_cast<std::uint32_t>(times_ns.size()));
}

// Adds the metrics that the run yields beside its time.
void LocalMeasurer::add_metrics(const Bound& bound, Measurement& measurement) {
  if (bound.run->packs_operands()) {
    if (std::optional<MetricValue> pack = time_binding(bound, measurement.problem)) {
      measurement.metrics.push_back(*std::move(pack));
    }
  }
  add_values(bound.run->metrics(), measurement);
}

void LocalMeasurer::evaluate_into(const Request& request, Measurement& measurement) {
  const Bound bound = make_run(0, measurement);
  if (!bound.run) {
    return;
  }
  measurement.flags = conditions();
  announce(0, Stage::kEvaluate);
  std::vector<std::string> of_family = request.evaluate;
  // The energy of a replayed run was consumed elsewhere.
  if (!family_->info().simulated) {
    std::erase(of_family, kEnergyJ);
  }
  if (of_family.size() < request.evaluate.size()) {
    Result<MetricValue> energy = energy_of(bound);
    if (refuse_failed(*bound.run, Stage::kEvaluate, measurement)) {
      return;
    }
    if (!energy) {
      refuse(measurement, outcome_of(energy.error()), Stage::kEvaluate, energy.error().message);
      return;
    }
    measurement.metrics.push_back(*std::move(energy));
  }
  if (of_family.empty()) {
    return;
  }
  Result<std::vector<MetricValue>> values = bound.run->evaluate(of_family);
  if (refuse_failed(*bound.run, Stage::kEvaluate, measurement)) {
    return;
  }
  if (!values) {
    refuse(measurement, outcome_of(values.error()), Stage::kEvaluate, values.error().message);
    return;
  }
  add_values(*std::move(values), measurement);
  for (const std::string& name : request.evaluate) {
    if (measurement.find(name) == nullptr) {
      refuse(measurement, Outcome::kPrepareFailed, Stage::kEvaluate,
             concat("the family yielded no finite ", name));
      return;
    }
  }
}

// Runs again and again for as long as the meter of the device, or of this machine, needs.
Result<MetricValue> LocalMeasurer::energy_of(const Bound& bound) {
  if (DeviceClock* const clock = bound.run->device_clock()) {
    FORETUNE_TRY(const double run_ns, clock->first_run());
    EnergyProtocol protocol = EnergyProtocol::for_device();
    protocol.runs_per_call = std::max<std::int64_t>(1, std::llround(kDeviceBatchNs / run_ns));
    std::vector<double> windows_ns;
    return measure_energy(
        [&] {
          windows_ns.clear();
          return clock->time(protocol.runs_per_call, 1, false, windows_ns);
        },
        run_ns, [&] { return family_->read_energy_j(); }, hooks_.now_ns, protocol);
  }
  if (!hooks_.read_energy_j) {
    FORETUNE_TRY(EnergyMeter meter, EnergyMeter::open());
    hooks_.read_energy_j = [kept = std::make_shared<EnergyMeter>(std::move(meter))] {
      return kept->read_j();
    };
  }
  bound.run->run();
  const std::int64_t begin_ns = hooks_.now_ns();
  bound.run->run();
  const auto run_ns = static_cast<double>(std::max<std::int64_t>(1, hooks_.now_ns() - begin_ns));
  return measure_energy(
      [&] {
        bound.run->run();
        const std::optional<RunFailure> failure = bound.run->failure();
        return failure ? Status(fail(ErrorCode::kInternal, failure->reason)) : Status();
      },
      run_ns, hooks_.read_energy_j, hooks_.now_ns, {});
}

void LocalMeasurer::measure_into(const Request& request, Measurement& measurement) {
  const Bound bound = make_run(0, measurement);
  if (!bound.run) {
    return;
  }
  measurement.flags = conditions();
  announce(0, Stage::kRun);
  current_->data->poison();
  const Timing timing = time_run(*bound.run, protocol_, request.incumbent_ns, hooks_.now_ns, evict_,
                                 hooks_.read_waits);
  if (refuse_failed(*bound.run, Stage::kRun, measurement)) {
    return;
  }
  if (timing.refused) {
    refuse(measurement, outcome_of(*timing.refused), Stage::kRun, timing.refused->message);
    return;
  }
  // A config that a device stopped early is no candidate, and verifying its result would take
  // longer than it ran.
  const bool is_slow_on_device = timing.censored && bound.run->device_clock() != nullptr;
  if (!is_slow_on_device && !verified(0, measurement)) {
    return;
  }
  if (timing.censored) {
    measurement.outcome = Outcome::kCensored;
    measurement.reason =
        bound.run->simulated_is_bound()
            ? std::string(kRecordedBound)
            : concat("slower than ", protocol_.censor_factor, " times the best of the problem");
    measurement.metrics = {
        {kTimeNs, timing.bound_ns, 0,
         static_cast<std::uint32_t>(std::max<std::size_t>(1, timing.windows_ns.size()))}};
    if (!is_slow_on_device) {
      add_metrics(bound, measurement);
    }
    return;
  }
  if (timing.is_disturbed) {
    measurement.flags |= kFlagLoaded;
  }
  finish(measurement, timing.windows_ns, timing.known_spread);
  add_metrics(bound, measurement);
}

Measurement LocalMeasurer::measure(const Request& request) {
  Measurement measurement = blank(request.problem, request.config);
  try {
    if (request.evaluate.empty()) {
      measure_into(request, measurement);
    } else {
      evaluate_into(request, measurement);
    }
  } catch (const std::bad_alloc&) {
    current_.reset();
    refuse(measurement, Outcome::kCrashed, stage_, "out of memory");
  }
  if (!request.evaluate.empty()) {
    measurement.stage = Stage::kEvaluate;
  }
  stage_ = Stage::kNone;
  return measurement;
}

// Makes, warms up and verifies a run; a config that fails here does not take part.
void LocalMeasurer::enter_contest(std::size_t index, Contestant& contestant,
                                  Measurement& measurement) {
  contestant.bound = make_run(index, measurement);
  if (!contestant.bound.run) {
    return;
  }
  announce(index, Stage::kRun);
  current_->data->poison();
  contestant.timer.emplace(*contestant.bound.run, protocol_, hooks_.now_ns, evict_,
                           hooks_.read_waits);
  const Status warm = contestant.timer->warm_up();
  if (refuse_failed(*contestant.bound.run, Stage::kRun, measurement)) {
    contestant.timer.reset();
    return;
  }
  if (!warm) {
    refuse(measurement, outcome_of(warm.error()), Stage::kRun, warm.error().message);
    contestant.timer.reset();
    return;
  }
  // All contestants write the same output, so each is verified before the next one runs.
  if (!verified(index, measurement)) {
    contestant.timer.reset();
  }
}

// Turns the windows of a contestant into its measurement.
void LocalMeasurer::leave_contest(std::size_t index, const Contestant& contestant,
                                  Measurement& measurement) {
  const CountedWindows counted = counted_windows(contestant.windows);
  if (counted.is_disturbed) {
    measurement.flags |= kFlagLoaded;
  }
  finish(measurement, counted.ns,
         contestant.timer->simulated() ? contestant.bound.run->simulated_spread() : 0);
  if (contestant.bound.run->simulated_is_bound()) {
    measurement.outcome = Outcome::kCensored;
    measurement.reason = kRecordedBound;
    measurement.metrics.resize(1);
  }
  // Reading metrics may crash like a run.
  announce(index, Stage::kRun);
  add_metrics(contestant.bound, measurement);
}

std::vector<Measurement> LocalMeasurer::compare(const Problem& problem,
                                                std::span<const Config> configs, int rounds) {
  std::vector<Measurement> measurements;
  std::vector<Contestant> contestants(configs.size());
  for (const Config& config : configs) {
    measurements.push_back(blank(problem, config));
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    try {
      enter_contest(i, contestants[i], measurements[i]);
    } catch (const std::bad_alloc&) {
      contestants[i].timer.reset();
      refuse(measurements[i], Outcome::kCrashed, stage_, "out of memory");
    }
  }
  for (int round = 0; round < std::max(1, rounds); ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      // Every round begins with another config, so that none always follows the same one.
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % contestants.size();
      if (contestants[turn].timer) {
        announce(turn, Stage::kRun);
        contestants[turn].windows.push_back(contestants[turn].timer->window());
        if (refuse_failed(*contestants[turn].bound.run, Stage::kRun, measurements[turn])) {
          contestants[turn].timer.reset();
        }
      }
    }
  }
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    measurements[i].flags = static_cast<std::uint8_t>(conditions() | kFlagReference);
    if (contestants[i].timer) {
      try {
        leave_contest(i, contestants[i], measurements[i]);
      } catch (const std::bad_alloc&) {
        refuse(measurements[i], Outcome::kCrashed, stage_, "out of memory");
      }
    }
  }
  stage_ = Stage::kNone;
  return measurements;
}

}  // namespace

std::unique_ptr<Measurer> make_local_measurer(std::shared_ptr<const Family> family,
                                              const Protocol& protocol, const Context& context,
                                              const MeasureHooks& hooks) {
  return std::make_unique<LocalMeasurer>(std::move(family), protocol, context, hooks);
}

}  // namespace foretune
