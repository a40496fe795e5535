#include "foretune/measure/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

constexpr std::int64_t kSlices = 4;
// Without this, a run below the clock's resolution, or a clock that stands still, would need
// endless windows.
constexpr double kShortestRunNs = 0.5;
// Reading how long threads waited takes some microseconds, too long after each short run of a
// warm-up. A thread that waits for a core does so for longer than this.
constexpr double kShortestAskedNs = 1e5;
// A cold window is a single run, and a single one could be a preemption.
constexpr std::size_t kColdDecision = 3;

bool decided_by_one_run(const RunTimer& timer, const Protocol& protocol, double threshold_ns) {
  return !timer.simulated() && timer.warm_up_runs() == 1 &&
         timer.least_ns() >= kSingleRunWindows * protocol.window_ns &&
         timer.least_ns() > kSingleRunFactor * threshold_ns;
}

// The rough time of a device run may be too high by this: the gap between two launches.
constexpr double kLaunchGapNs = 2e4;
// The most windows of one submission; more windows take several.
constexpr std::int32_t kDeviceBatch = 16;
// The most runs of a window: a graph of more nodes takes longer to make than it saves.
constexpr double kMaxDeviceRuns = 64;

std::vector<double> times_of(const std::vector<Window>& windows) {
  std::vector<double> out;
  for (const Window& window : windows) {
    out.push_back(window.ns);
  }
  return out;
}

// True when further windows would change nothing worth knowing.
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

void Protocol::look_briefly(const FamilyInfo& info) {
  if (info.search_window_ns > 0) {
    window_ns = info.search_window_ns;
    warmup_ns = 0.5 * info.search_window_ns;
  }
}

Protocol Protocol::brief(const FamilyInfo& info) {
  Protocol protocol;
  protocol.windows = 2;
  protocol.max_windows = 3;
  protocol.look_briefly(info);
  return protocol;
}

RunTimer::RunTimer(Run& run, const Protocol& protocol, const NowNs& now_ns,
                   const std::function<void()>& evict, const ReadWaits& read_waits)
    : run_(run),
      clock_(run.device_clock()),
      protocol_(protocol),
      now_ns_(now_ns),
      evict_(evict),
      read_waits_(read_waits) {}

const ReadWaits& RunTimer::no_waits() {
  static const ReadWaits kNone;
  return kNone;
}

double RunTimer::elapsed_ns() const {
  return simulated_ ? 0 : static_cast<double>(now_ns_() - start_ns_);
}

RunTimer::Slice RunTimer::timed_runs(std::int64_t count) {
  const std::int64_t begin_ns = now_ns_();
  for (std::int64_t i = 0; i < count; ++i) {
    run_.run();
  }
  const double elapsed_ns = static_cast<double>(now_ns_() - begin_ns);
  return {elapsed_ns, read_waits_ && elapsed_ns >= kShortestAskedNs ? read_waits_() : Waits{}};
}

void RunTimer::forget_waits() {
  if (read_waits_) {
    read_waits_();
  }
}

void RunTimer::note(const Slice& slice, std::int64_t runs) {
  const auto count = static_cast<double>(runs);
  fastest_ns_ = std::min(fastest_ns_, slice.ns / count);
  least_ns_ = std::min(least_ns_, std::max(0.0, slice.ns - slice.waits.all_ns) / count);
}

Status RunTimer::warm_up() {
  start_ns_ = now_ns_();
  if (clock_ != nullptr) {
    FORETUNE_TRY(fastest_ns_, clock_->first_run());
    least_ns_ = fastest_ns_;
    warm_up_runs_ = 2;
    return {};
  }
  forget_waits();
  Slice slice = timed_runs(1);
  fastest_ns_ = least_ns_ = slice.ns;
  note(slice, 1);
  is_warm_up_disturbed_ = slice.is_disturbed();
  warm_up_runs_ = 1;
  const double simulated_ns = run_.simulated_ns();
  if (simulated_ns >= 0) {
    simulated_ = true;
    fastest_ns_ = least_ns_ = simulated_ns;
    return {};
  }
  // With cold caches, one run loads the code; the data has to be cold anyway.
  const double wanted_ns = is_cold() ? 0 : protocol_.warmup_ns;
  double total_ns = fastest_ns_;
  while (!has_failed() && (total_ns < wanted_ns || warm_up_runs_ < protocol_.warmup_runs)) {
    slice = timed_runs(1);
    total_ns += std::max(slice.ns, kShortestRunNs);
    if (slice.ns < fastest_ns_) {
      is_warm_up_disturbed_ = slice.is_disturbed();
    }
    note(slice, 1);
    ++warm_up_runs_;
  }
  return {};
}

void RunTimer::device_windows(std::int32_t count, std::vector<double>& windows_ns) {
  FORETUNE_CHECK(clock_ != nullptr && warm_up_runs_ > 0);
  if (device_runs_ == 0) {
    const double wanted = std::ceil(protocol_.device_window_ns / std::max(fastest_ns_, 1.0));
    device_runs_ = static_cast<std::int64_t>(std::clamp(wanted, 1.0, kMaxDeviceRuns));
  }
  const std::size_t before = windows_ns.size();
  // A kernel that ran once runs again, unless the device is lost. The process cannot go on then.
  const Status timed = clock_->time(device_runs_, count, is_cold(), windows_ns);
  if (!timed && !has_failed()) {
    check_failed(__FILE__, __LINE__, timed.error().message.c_str());
  }
  for (std::size_t i = before; i < windows_ns.size(); ++i) {
    fastest_ns_ = std::min(fastest_ns_, windows_ns[i]);
  }
}

Window RunTimer::window() {
  FORETUNE_CHECK(warm_up_runs_ > 0);
  Window best = one_window();
  for (int repeat = 0; repeat < kMaxRepeats && best.is_disturbed &&
                       elapsed_ns() < protocol_.max_total_ns && !has_failed();
       ++repeat) {
    const Window again = one_window();
    if (!again.is_disturbed || again.ns < best.ns) {
      best = again;
    }
  }
  return best;
}

Window RunTimer::one_window() {
  if (clock_ != nullptr) {
    std::vector<double> one;
    device_windows(1, one);
    return {one.empty() ? 0 : one.front()};
  }
  if (simulated_) {
    const double sample_ns = run_.simulated_ns();
    fastest_ns_ = least_ns_ = std::min(fastest_ns_, sample_ns);
    return {sample_ns};
  }
  if (!is_cold()) {
    return warm_window();
  }
  evict_();
  forget_waits();
  const Slice slice = timed_runs(1);
  // The warm-up runs were partly warm: they say nothing about cold runs.
  if (!seen_cold_) {
    fastest_ns_ = least_ns_ = slice.ns;
  }
  note(slice, 1);
  seen_cold_ = true;
  return {slice.ns, slice.is_disturbed()};
}

Window RunTimer::warm_window() {
  const double estimate_ns = std::max(fastest_ns_, kShortestRunNs);
  const double wanted = std::ceil(protocol_.window_ns / estimate_ns);
  const auto runs = static_cast<std::int64_t>(std::clamp(wanted, 1.0, 1e9));
  const std::int64_t slice_runs = (runs + kSlices - 1) / kSlices;
  Slice whole;
  std::int64_t done = 0;
  forget_waits();
  do {
    Slice slice = timed_runs(slice_runs);
    slice.ns = std::max(slice.ns, kShortestRunNs * static_cast<double>(slice_runs));
    note(slice, slice_runs);
    whole.ns += slice.ns;
    whole.waits.longest_ns += slice.waits.longest_ns;
    done += slice_runs;
  } while (whole.ns < protocol_.window_ns && !has_failed());
  return {whole.ns / static_cast<double>(done), whole.is_disturbed()};
}

CountedWindows counted_windows(const std::vector<Window>& windows) {
  CountedWindows out;
  for (const Window& window : windows) {
    if (!window.is_disturbed) {
      out.ns.push_back(window.ns);
    }
  }
  if (out.ns.size() < std::min<std::size_t>(2, windows.size())) {
    return {times_of(windows), true};
  }
  return out;
}

namespace {

// Times all windows at once, and more of them at once while they scatter.
Timing time_on_device(RunTimer& timer, const Protocol& protocol, double incumbent_ns) {
  Timing timing;
  const double threshold_ns = protocol.censor_factor * incumbent_ns;
  if (incumbent_ns > 0 && protocol.censor_factor > 0 &&
      timer.fastest_ns() - kLaunchGapNs > threshold_ns) {
    timing.censored = true;
    timing.bound_ns = std::max(threshold_ns, kBoundShare * timer.fastest_ns());
    return timing;
  }
  // Limits the number of windows: even with one run each, they must fit into max_total_ns.
  const double affordable = protocol.max_total_ns / std::max(timer.fastest_ns(), 1.0);
  auto left = static_cast<std::int32_t>(std::clamp(affordable, 1.0, 1e4));
  do {
    const std::int32_t count = std::min({std::max(1, protocol.windows), kDeviceBatch, left});
    timer.device_windows(count, timing.windows_ns);
    left -= count;
    timing.failed = timer.has_failed();
  } while (left > 0 && !timing.failed &&
           !enough_windows(timing.windows_ns, protocol, incumbent_ns));
  return timing;
}

}  // namespace

Timing time_run(Run& run, const Protocol& protocol, double incumbent_ns, const NowNs& now_ns,
                const std::function<void()>& evict, const ReadWaits& read_waits) {
  RunTimer timer(run, protocol, now_ns, evict, read_waits);
  Timing timing;
  const Status warm = timer.warm_up();
  if (timer.has_failed()) {
    timing.failed = true;
    return timing;
  }
  if (!warm) {
    timing.refused = warm.error();
    return timing;
  }
  if (timer.on_device()) {
    return time_on_device(timer, protocol, incumbent_ns);
  }
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
    timing.bound_ns = std::max(threshold_ns, kSingleRunBoundShare * timer.least_ns());
    return timing;
  }
  if (timer.elapsed_ns() >= protocol.max_total_ns && protocol.cache == CacheState::kWarm) {
    timing.windows_ns.push_back(timer.fastest_ns());  // the one complete run has to suffice
    timing.is_disturbed = timer.is_warm_up_disturbed();
    return timing;
  }
  const std::size_t decide_at = protocol.cache == CacheState::kCold ? kColdDecision : 1;
  std::vector<Window> windows;
  do {
    windows.push_back(timer.window());
    if (timer.has_failed()) {
      timing.failed = true;
      return timing;
    }
    // The fastest slice only ever falls: a later window rarely turns a yes into a no.
    if (may_stop && windows.size() == decide_at && timer.least_ns() > threshold_ns) {
      timing.windows_ns = times_of(windows);
      timing.censored = true;
      timing.bound_ns = std::max(threshold_ns, kBoundShare * timer.least_ns());
      return timing;
    }
  } while (!enough_windows(times_of(windows), protocol, incumbent_ns) &&
           timer.elapsed_ns() < protocol.max_total_ns);
  CountedWindows counted = counted_windows(windows);
  timing.windows_ns = std::move(counted.ns);
  timing.is_disturbed = counted.is_disturbed;
  return timing;
}

std::vector<MetricValue> timing_metrics(const std::vector<double>& windows_ns,
                                        double known_spread) {
  FORETUNE_CHECK(!windows_ns.empty());
  const double spread = std::max(relative_spread(windows_ns), known_spread);
  const auto samples = static_cast<std::uint32_t>(windows_ns.size());
  return {
      {kTimeNs, *std::min_element(windows_ns.begin(), windows_ns.end()), spread, samples},
      {kMedianNs, median(windows_ns), spread, samples},
  };
}

}  // namespace foretune
