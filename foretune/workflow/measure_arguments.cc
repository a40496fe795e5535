#include "foretune/workflow/measure_arguments.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/metrics/objective.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::workflow {
namespace {

constexpr std::int64_t kMaxRuns = 1'000'000;  // of --warmup and --repeat

std::string cores_text(int cores) { return count_of(static_cast<std::uint64_t>(cores), "core"); }

}  // namespace

CpuLoad load_now() {
  CpuLoadMeter meter;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return meter.read();
}

int free_cores(const CpuLoad& load, int cores) {
  return std::clamp(static_cast<int>(std::floor(cores - load.other_cores + 0.5)), 1, cores);
}

void MeasureArguments::visit(OptionList& list, Condition condition) {
  list.section("Measuring", std::move(condition));
  list.add_switch("cold-cache", cold_cache, "evict the caches before every run");
  list.add_switch("keep-samples", keep_samples, "store every timed window, not only statistics");
  list.add("time-limit", time_limit, "SECONDS",
           "stop a measurement after this many seconds and kill its worker process")
      .at_least(0);
  list.add("censor-factor", censor_factor, "X",
           "stop a config early when it is slower than X times the best so far; 0 never does")
      .at_least(0);
  list.add("warmup", warmup, "N",
           "make at least N runs before the first timed one, and run for at least 0.5 ms")
      .at_least(0)
      .at_most(kMaxRuns);
  list.add(
          "repeat", repeat, "N",
          "time N windows of every config unless it is stopped early; 0 takes 5 to 15 within 0.3 s")
      .at_least(0)
      .at_most(kMaxRuns);
  list.add("max-load", max_load, "CORES", "fail when other work keeps more than CORES cores busy")
      .at_least(0);
}

Protocol MeasureArguments::protocol(std::uint64_t seed) const {
  Protocol protocol;
  protocol.cache = cold_cache ? CacheState::kCold : CacheState::kWarm;
  protocol.keep_samples = keep_samples;
  protocol.time_limit_s = time_limit;
  protocol.censor_factor = censor_factor;
  protocol.data_seed = seed;
  protocol.warmup_runs = static_cast<int>(std::max<std::int64_t>(1, warmup));
  if (repeat > 0) {
    protocol.windows = static_cast<int>(repeat);
    protocol.max_windows = protocol.windows;
    protocol.max_total_ns = std::numeric_limits<double>::infinity();
  }
  return protocol;
}

Result<Context> MeasureArguments::context(const FamilyInfo& info) const {
  if (cold_cache && info.simulated) {
    return fail(ErrorCode::kInvalidArgument, "the family ", info.name,
                " runs nothing, so --cold-cache would change no time");
  }
  if (max_load) {
    if (info.simulated) {
      return fail(ErrorCode::kInvalidArgument, "the family ", info.name,
                  " runs nothing, so nothing disturbs it and --max-load would change nothing");
    }
    const double busy = load_now().other_cores;
    if (busy > *max_load) {
      return fail(ErrorCode::kUnsupported, "other work keeps ", fixed(busy, 1), " of ",
                  cores_text(read_cpu_facts().cores), " busy, more than --max-load ",
                  fixed(*max_load, 1), ": times measured beside it would say little");
    }
  }
  Context context;
  context.machine = info.fingerprint.digest();
  context.device = info.fingerprint.device;
  context.threads = static_cast<std::int32_t>(info.max_threads);
  context.cache = cold_cache ? CacheState::kCold : CacheState::kWarm;
  return context;
}

Result<std::unique_ptr<Measurer>> open_measurer(const LiveFamily& live, const Protocol& protocol,
                                                const Context& context,
                                                const Invocation& invocation) {
  const FamilyInfo& info = live.family->info();
  if (!info.note.empty()) {
    invocation.remark(info.note);
  }
  if (!info.needs_worker) {
    return make_local_measurer(live.family, protocol, context);
  }
  return make_worker_measurer(worker_setup(info.name, live.options, invocation), protocol, context);
}

Result<std::vector<std::string>> evaluated_metrics(std::string_view text, const FamilyInfo& info) {
  Objective named;
  for (const std::string_view name : split(text, ',')) {
    if (!trim(name).empty()) {
      named.targets.emplace_back(trim(name));
    }
  }
  FORETUNE_TRY_STATUS(check_objective(named, info));
  std::erase_if(named.targets, [&](const std::string& name) {
    const MetricInfo* const metric = find_metric(info.metrics, name);
    return metric == nullptr || metric->stage != MetricStage::kEvaluation;
  });
  return named.targets;
}

std::vector<std::string> load_warnings() {
  const CpuLoad load = load_now();
  const int cores = read_cpu_facts().cores;
  if (!load.is_disturbed(cores)) {
    return {};
  }
  const int free = free_cores(load, cores);
  return {concat("other work keeps ", fixed(load.other_cores, 1), " of ", cores_text(cores),
                 " busy; times that it disturbs are taken again, or marked",
                 free < cores ? concat(" (--threads ", free, " stays off its cores)") : "")};
}

}  // namespace foretune::workflow
