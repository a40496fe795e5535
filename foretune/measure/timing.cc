#include "foretune/measure/timing.h"

#include <algorithm>
#include <cmath>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

constexpr std::int64_t kSlices = 4;
// A run below the clock's resolution, or a clock that stands still, would otherwise ask for endless
// windows.
constexpr double kShortestRunNs = 0.5;
// A cold window is a single run: one alone could be a preemption.
constexpr std::size_t kColdDecision = 3;

bool decided_by_one_run(const RunTimer& timer, const Protocol& protocol, double threshold_ns) {
  return !timer.simulated() && timer.warm_up_runs() == 1 &&
         timer.fastest_ns() >= kSingleRunWindows * protocol.window_ns &&
         timer.fastest_ns() > kSingleRunFactor * threshold_ns;
}

// Whether further windows would change anything worth knowing.
bool enough_windows(const std::vector<double>& windows_ns, const Protocol& protocol,
                    double incumbent_ns) {
  const auto wanted = static_cast<std::size_t>(std::max(1, protocol.windows));
  const auto limit = std::max(wanted, static_cast<std::size_t>(std::max(1, protocol.max_windows)));
  if (windows_ns.size() < wanted) {
    return false;
  }
  if (windows_ns.size() >= limit) {
    return true;
  }
  const double minimum_ns = *std::min_element(windows_ns.begin(), windows_ns.end());
  if (incumbent_ns > 0 && minimum_ns > kContenderFactor * incumbent_ns) {
    return true;
  }
  return relative_spread(windows_ns) <= protocol.target_spread;
}

}  // namespace

RunTimer::RunTimer(Run& run, const Protocol& protocol, const NowNs& now_ns,
                   const std::function<void()>& evict)
    : run_(run), protocol_(protocol), now_ns_(now_ns), evict_(evict) {}

double RunTimer::elapsed_ns() const {
  return simulated_ ? 0 : static_cast<double>(now_ns_() - start_ns_);
}

double RunTimer::timed_runs(std::int64_t count) {
  const std::int64_t begin_ns = now_ns_();
  for (std::int64_t i = 0; i < count; ++i) {
    run_.run();
  }
  return static_cast<double>(now_ns_() - begin_ns);
}

void RunTimer::warm_up() {
  start_ns_ = now_ns_();
  fastest_ns_ = timed_runs(1);
  warm_up_runs_ = 1;
  const double simulated_ns = run_.simulated_ns();
  if (simulated_ns >= 0) {
    simulated_ = true;
    fastest_ns_ = simulated_ns;
    return;
  }
  // With cold caches one run loads the code; the data is to be cold anyway.
  const double wanted_ns = protocol_.cache == CacheState::kCold ? 0 : protocol_.warmup_ns;
  double total_ns = fastest_ns_;
  while (total_ns < wanted_ns || warm_up_runs_ < protocol_.warmup_runs) {
    const double run_ns = timed_runs(1);
    total_ns += std::max(run_ns, kShortestRunNs);
    fastest_ns_ = std::min(fastest_ns_, run_ns);
    ++warm_up_runs_;
  }
}

double RunTimer::window() {
  FORETUNE_CHECK(warm_up_runs_ > 0);
  if (simulated_) {
    const double sample_ns = run_.simulated_ns();
    fastest_ns_ = std::min(fastest_ns_, sample_ns);
    return sample_ns;
  }
  if (protocol_.cache == CacheState::kCold) {
    evict_();
    const double sample_ns = timed_runs(1);
    // The warm-up runs were warm in part: they say nothing about cold ones.
    fastest_ns_ = seen_cold_ ? std::min(fastest_ns_, sample_ns) : sample_ns;
    seen_cold_ = true;
    return sample_ns;
  }
  return warm_window();
}

double RunTimer::warm_window() {
  const double estimate_ns = std::max(fastest_ns_, kShortestRunNs);
  const double wanted = std::ceil(protocol_.window_ns / estimate_ns);
  const auto runs = static_cast<std::int64_t>(std::clamp(wanted, 1.0, 1e9));
  const std::int64_t slice = (runs + kSlices - 1) / kSlices;
  double elapsed_ns = 0;
  std::int64_t done = 0;
  do {
    const double slice_ns =
        std::max(timed_runs(slice), kShortestRunNs * static_cast<double>(slice));
    elapsed_ns += slice_ns;
    done += slice;
    fastest_ns_ = std::min(fastest_ns_, slice_ns / static_cast<double>(slice));
  } while (elapsed_ns < protocol_.window_ns);
  return elapsed_ns / static_cast<double>(done);
}

Timing time_run(Run& run, const Protocol& protocol, double incumbent_ns, const NowNs& now_ns,
                const std::function<void()>& evict) {
  RunTimer timer(run, protocol, now_ns, evict);
  timer.warm_up();
  Timing timing;
  timing.known_spread = timer.simulated() ? run.simulated_spread() : 0;
  if (timer.simulated() && run.simulated_is_bound()) {
    timing.censored = true;
    timing.bound_ns = timer.fastest_ns();
    return timing;
  }
  const bool may_stop = incumbent_ns > 0 && protocol.censor_factor > 0;
  const double threshold_ns = protocol.censor_factor * incumbent_ns;
  if (may_stop && decided_by_one_run(timer, protocol, threshold_ns)) {
    timing.censored = true;
    timing.bound_ns = std::max(threshold_ns, kSingleRunBoundShare * timer.fastest_ns());
    return timing;
  }
  if (timer.elapsed_ns() >= protocol.max_total_ns && protocol.cache == CacheState::kWarm) {
    timing.windows_ns.push_back(timer.fastest_ns());  // the one complete run has to do
    return timing;
  }
  const std::size_t decide_at = protocol.cache == CacheState::kCold ? kColdDecision : 1;
  do {
    timing.windows_ns.push_back(timer.window());
    // The fastest slice only ever falls: a later window rarely turns a yes into a no.
    if (may_stop && timing.windows_ns.size() == decide_at && timer.fastest_ns() > threshold_ns) {
      timing.censored = true;
      timing.bound_ns = std::max(threshold_ns, kBoundShare * timer.fastest_ns());
      return timing;
    }
  } while (!enough_windows(timing.windows_ns, protocol, incumbent_ns) &&
           timer.elapsed_ns() < protocol.max_total_ns);
  return timing;
}

std::vector<MetricValue> timing_metrics(const std::vector<double>& windows_ns,
                                        double known_spread) {
  FORETUNE_CHECK(!windows_ns.empty());
  const double spread = std::max(relative_spread(windows_ns), known_spread);
  const auto samples = static_cast<std::uint32_t>(windows_ns.size());
  return {
      {MetricId::kTimeNs, *std::min_element(windows_ns.begin(), windows_ns.end()), spread, samples},
      {MetricId::kMedianNs, median(windows_ns), spread, samples},
  };
}

}  // namespace foretune
