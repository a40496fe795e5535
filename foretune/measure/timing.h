// The clockwork of the timing protocol: warm-up, windows, slices, early stopping. Knows a Run and
// a clock, nothing of problems, files or processes.
//
// A run on a device is timed by the device's clock: one rough run, then all windows as one
// submission.
//
// A window is split into up to four slices with a clock reading in between. The window's mean is
// the sample; the fastest slice decides about early stopping, because one preemption spoils a
// window, but hardly all of its slices.
//
//   RunTimer timer(run, protocol, now_ns, evict);
//   timer.warm_up();
//   const double sample_ns = timer.window();
//
// Thread safety: values of one thread. Cost: five clock readings a window.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "foretune/family/family.h"
#include "foretune/measure/measure.h"

namespace foretune {

using NowNs = std::function<std::int64_t()>;

// A config whose time is within this factor of the incumbent is measured with more windows while
// its spread is large; for the others the first windows say enough.
inline constexpr double kContenderFactor = 1.1;
// One run alone decides only when it is this many windows long (several scheduler time slices, so
// that a preemption cannot explain it) and this far above the threshold.
inline constexpr double kSingleRunWindows = 20;
inline constexpr double kSingleRunFactor = 4;
// What is stored of an early stop: this share of the fastest observation, at least the threshold.
inline constexpr double kBoundShare = 0.75;
inline constexpr double kSingleRunBoundShare = 0.5;

class RunTimer {
 public:
  // `evict` is called before every timed run of a cold-cache protocol. All references must outlive
  // the timer.
  RunTimer(Run& run, const Protocol& protocol, const NowNs& now_ns,
           const std::function<void()>& evict);

  // Runs for protocol.warmup_ns, at least protocol.warmup_runs times and once. Errors: what a
  // device refuses.
  Status warm_up();
  // Time per run over one window.
  double window();
  // On a device: `count` windows of which the host sees nothing.
  void device_windows(std::int32_t count, std::vector<double>& windows_ns);

  // The fastest slice, or warm-up run, so far.
  [[nodiscard]] double fastest_ns() const { return fastest_ns_; }
  [[nodiscard]] std::int64_t warm_up_runs() const { return warm_up_runs_; }
  [[nodiscard]] bool simulated() const { return simulated_; }
  [[nodiscard]] bool on_device() const { return clock_ != nullptr; }
  // Clock time since warm_up() began, evictions included.
  [[nodiscard]] double elapsed_ns() const;

 private:
  double timed_runs(std::int64_t count);
  double warm_window();
  [[nodiscard]] bool is_cold() const { return protocol_.cache == CacheState::kCold; }

  Run& run_;
  DeviceClock* clock_;  // nullptr: the host's
  const Protocol& protocol_;
  const NowNs& now_ns_;
  const std::function<void()>& evict_;
  std::int64_t start_ns_ = 0;
  std::int64_t warm_up_runs_ = 0;
  bool seen_cold_ = false;  // a window with cold caches
  double fastest_ns_ = 0;
  bool simulated_ = false;
  std::int64_t device_runs_ = 0;  // of every window on a device
};

struct Timing {
  std::vector<double> windows_ns;  // per run; one entry per window
  bool censored = false;
  double bound_ns = 0;           // when censored: a lower bound of the time
  double known_spread = 0;       // of a replayed time, whose windows are all equal
  std::optional<Error> refused;  // a device would not run it; nothing else is set then
};

// The whole protocol for one config. `incumbent_ns` <= 0: no incumbent, never stopped early.
Timing time_run(Run& run, const Protocol& protocol, double incumbent_ns, const NowNs& now_ns,
                const std::function<void()>& evict);

// The metrics of a set of windows: minimum, median, spread (at least `known_spread`).
std::vector<MetricValue> timing_metrics(const std::vector<double>& windows_ns,
                                        double known_spread = 0);

}  // namespace foretune
