// The timer of the timing protocol: warm-up, windows, slices, early stopping. It knows a Run and a
// clock, but no problems, files or processes.
//
// A run on a device is timed by the device's clock: one rough run, then all windows as one
// submission.
//
// A window is split into up to four slices with a clock reading in between. The window's mean is
// the sample; the fastest slice decides about early stopping, because one preemption spoils a
// window, but hardly all of its slices.
//
// A slice during which a thread of this process waited for a core also measures other processes. A
// window in which a thread waited for more than a twentieth of the time is repeated, up to three
// times, and early stopping subtracts the waiting.
//
//   RunTimer timer(run, protocol, now_ns, evict);
//   timer.warm_up();
//   const double sample_ns = timer.window().ns;
//
// Thread safety: values of one thread. Cost: five readings a window of the clock and of the waits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "foretune/family/family.h"
#include "foretune/hardware/thread_waits.h"
#include "foretune/measure/measure.h"

namespace foretune {

using NowNs = std::function<std::int64_t()>;
// Returns how long threads waited for a core since the last call. Empty: this is not known.
using ReadWaits = std::function<Waits()>;

// A config whose time is within this factor of the incumbent is measured with more windows while
// its relative interquartile range is large; for the others the first windows are enough.
inline constexpr double kContenderFactor = 1.1;
// One run alone decides only when it is this many windows long (several scheduler time slices, so
// that a preemption cannot explain it) and this far above the threshold.
inline constexpr double kSingleRunWindows = 20;
inline constexpr double kSingleRunFactor = 4;
// An early stop stores this share of the fastest observation, at least the threshold.
inline constexpr double kBoundShare = 0.75;
inline constexpr double kSingleRunBoundShare = 0.5;
// A window is disturbed when a thread waited for a core for more than this share of it. A disturbed
// window is repeated at most kMaxRepeats times.
inline constexpr double kMaxWaiting = 0.05;
inline constexpr int kMaxRepeats = 3;

struct Window {
  double ns = 0;  // per run
  bool is_disturbed = false;
};

class RunTimer {
 public:
  // `evict` is called before every timed run of a cold-cache protocol. All references must outlive
  // the timer.
  RunTimer(Run& run, const Protocol& protocol, const NowNs& now_ns,
           const std::function<void()>& evict, const ReadWaits& read_waits = no_waits());

  // Runs for protocol.warmup_ns, at least protocol.warmup_runs times and once. Errors: the refusal
  // of a device.
  Status warm_up();
  // Times one window, per run. Repeats it while it is disturbed and the protocol's time lasts; of
  // several disturbed windows, returns the shortest.
  Window window();
  // Times `count` windows on a device as one submission, which the host does not observe.
  void device_windows(std::int32_t count, std::vector<double>& windows_ns);

  // Returns the time of the fastest slice, or warm-up run, so far.
  [[nodiscard]] double fastest_ns() const { return fastest_ns_; }
  // Returns the lowest such time without the waits of its threads: no run can be faster.
  [[nodiscard]] double least_ns() const { return least_ns_; }
  // Returns true when the fastest warm-up run was disturbed.
  [[nodiscard]] bool is_warm_up_disturbed() const { return is_warm_up_disturbed_; }
  [[nodiscard]] std::int64_t warm_up_runs() const { return warm_up_runs_; }
  [[nodiscard]] bool simulated() const { return simulated_; }
  [[nodiscard]] bool on_device() const { return clock_ != nullptr; }
  // Returns true when a run failed: the times before and after it mean nothing.
  [[nodiscard]] bool has_failed() const { return run_.failure().has_value(); }
  // Returns the clock time since warm_up() began, evictions included.
  [[nodiscard]] double elapsed_ns() const;

 private:
  struct Slice {
    double ns = 0;
    Waits waits;
    [[nodiscard]] bool is_disturbed() const { return waits.longest_ns > kMaxWaiting * ns; }
  };
  static const ReadWaits& no_waits();
  // Waits are counted since the last slice that was long enough to read them, or since
  // forget_waits().
  Slice timed_runs(std::int64_t count);
  void forget_waits();
  void note(const Slice& slice, std::int64_t runs);
  Window one_window();
  Window warm_window();
  [[nodiscard]] bool is_cold() const { return protocol_.cache == CacheState::kCold; }

  Run& run_;
  DeviceClock* clock_;  // nullptr: the host's
  const Protocol& protocol_;
  const NowNs& now_ns_;
  const std::function<void()>& evict_;
  const ReadWaits& read_waits_;
  std::int64_t start_ns_ = 0;
  std::int64_t warm_up_runs_ = 0;
  bool seen_cold_ = false;  // a window with cold caches
  double fastest_ns_ = 0;
  double least_ns_ = 0;
  bool is_warm_up_disturbed_ = false;
  bool simulated_ = false;
  std::int64_t device_runs_ = 0;  // of every window on a device
};

struct Timing {
  std::vector<double> windows_ns;  // per run; one entry per window that counts
  bool is_disturbed = false;       // all of them were disturbed, or all but one
  bool censored = false;
  double bound_ns = 0;           // when censored: a lower bound of the time
  double known_spread = 0;       // of a replayed time, whose windows are all equal
  std::optional<Error> refused;  // a device would not run it; nothing else is set then
  bool failed = false;           // Run::failure() says why; nothing else is set then
};

// Runs the whole protocol for one config. `incumbent_ns` <= 0: no incumbent, never stopped early.
Timing time_run(Run& run, const Protocol& protocol, double incumbent_ns, const NowNs& now_ns,
                const std::function<void()>& evict, const ReadWaits& read_waits = {});

// The windows that count: the undisturbed ones when there are at least two, or when the only window
// is undisturbed; otherwise all, marked as disturbed.
struct CountedWindows {
  std::vector<double> ns;
  bool is_disturbed = false;
};
CountedWindows counted_windows(const std::vector<Window>& windows);

// Returns the metrics of a set of windows: minimum, median, spread (at least `known_spread`).
std::vector<MetricValue> timing_metrics(const std::vector<double>& windows_ns,
                                        double known_spread = 0);

}  // namespace foretune
