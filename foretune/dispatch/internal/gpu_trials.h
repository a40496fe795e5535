// Trials whose work goes on in streams of the caller: events time them, and nobody waits.
//
// Thread safety: all members, any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/cuda/captured_graph.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/cuda/event_clock.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/dispatch/internal/trial_budget.h"

namespace foretune::dispatch_internal {

// Lets the calling thread use the driver freely while other threads capture, as long as it lives.
// Work that it enqueues on a captured stream still goes into the graph.
class RelaxedCaptures {
 public:
  explicit RelaxedCaptures(const cuda::DriverApi& driver) : driver_(driver) {
    is_set_ = driver_.exchange_capture_mode(&mode_) == cuda::kDriverSuccess;
  }
  ~RelaxedCaptures() {
    if (is_set_) {
      driver_.exchange_capture_mode(&mode_);
    }
  }
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;

 private:
  const cuda::DriverApi& driver_;
  int mode_ = cuda::kCaptureRelaxed;
  bool is_set_ = false;
};

// Work that takes less is timed as part of many runs, because the device may wait for the host
// between two events: some microseconds.
inline constexpr double kShortNs = 1e6;
// The time that such runs fill, as far as their number allows.
inline constexpr double kBurstNs = 2e5;
inline constexpr int kMostRuns = 50;

class GpuTrials {
 public:
  // Enqueues the work of a trial once more, on any stream, and returns the library's status.
  using Again = std::function<int(cuda::Stream)>;

  // `share`: see TrialBudget.
  GpuTrials(std::shared_ptr<const cuda::DriverApi> driver, Dispatcher& dispatcher, double share = 1)
      : driver_(std::move(driver)), clock_(driver_), dispatcher_(dispatcher), budget_(share) {}
  ~GpuTrials() {
    for (const auto& [device, stream] : capturing_) {
      driver_->stream_destroy(stream);
    }
  }
  GpuTrials(const GpuTrials&) = delete;
  GpuTrials& operator=(const GpuTrials&) = delete;

  // Runs a trial and times it; abandons the first of a kernel, when the driver loads it, and those
  // that cannot be timed. `run` returns the library's status. Where `is_refusal(status)`, the trial
  // is left for the caller to replace.
  template <class Run, class IsRefusal>
  int time(const Dispatcher::Turn& turn, cuda::Stream stream, const Run& run,
           const IsRefusal& is_refusal) {
    return time_once(turn, stream, run, is_refusal, !turn.is_first(), 0);
  }

  // As time(), for work that may run any number of times with the same result: short work does,
  // twice up to 200 us more for each trial.
  template <class Run, class IsRefusal>
  int time_often(const Dispatcher::Turn& turn, cuda::Stream stream, const Run& run,
                 const Again& again, const IsRefusal& is_refusal) {
    if (turn.at_most_ns() >= kShortNs) {
      return time_once(turn, stream, run, is_refusal, true, kShortNs);
    }
    return budget_.spend_on([&] {
      const int status = run();
      if (status != 0) {
        if (!is_refusal(status)) {
          dispatcher_.abandon(turn);
        }
      } else if (auto burst = time_burst(turn, stream, again)) {
        const std::lock_guard lock(mutex_);
        running_.push_back(*std::move(burst));
      } else {
        // The driver refuses graphs: a rough time is better than none.
        dispatcher_.report(turn, turn.at_most_ns());
      }
      return status;
    });
  }

  // Returns true when the same call may also run trials of other kernels, because all this work is
  // short.
  static bool may_go_on(const Dispatcher::Turn& turn) {
    return turn.is_trial() && turn.fastest_ns() < kShortNs;
  }

  // Reports those whose work has ended.
  void report_ended() {
    const std::lock_guard lock(mutex_);
    if (running_.empty()) {
      return;
    }
    budget_.spend_on([this] { return report_running(); });
  }

  // Counts the time of the caller and the device; the caller asks whether it allows a trial.
  TrialBudget& budget() { return budget_; }

  [[nodiscard]] bool may_time(cuda::Stream stream) const { return !clock_.is_capturing(stream); }

 private:
  struct Trial {
    Dispatcher::Turn turn;
    cuda::EventClock::Span span;
    int runs = 1;
    double least_ns = 0;                       // a shorter time is only a bound
    std::optional<cuda::CapturedGraph> graph;  // of the runs

    // Returns the time that the device would not have spent without the trial.
    [[nodiscard]] double extra_ns(double measured_ns) const {
      if (graph) {
        return 2 * measured_ns;
      }
      return std::isfinite(turn.fastest_ns()) ? std::max(0.0, measured_ns - turn.fastest_ns()) : 0;
    }
  };

  // Returns how many ended. Call it under mutex_.
  std::size_t report_running() {
    const RelaxedCaptures relaxed(*driver_);
    return std::erase_if(running_, [this](const Trial& trial) {
      const auto nanoseconds = clock_.read(trial.span);
      if (!nanoseconds) {
        dispatcher_.abandon(trial.turn);
      } else if (*nanoseconds) {
        const double one_ns = **nanoseconds / trial.runs;
        budget_.spend(trial.extra_ns(**nanoseconds) / 1e9);
        if (one_ns < trial.least_ns) {
          dispatcher_.abandon(trial.turn, one_ns);
        } else {
          dispatcher_.report(trial.turn, one_ns);
        }
      }
      return !nanoseconds || *nanoseconds;
    });
  }

  template <class Run, class IsRefusal>
  int time_once(const Dispatcher::Turn& turn, cuda::Stream stream, const Run& run,
                const IsRefusal& is_refusal, bool is_timed, double least_ns) {
    std::optional<cuda::EventClock::Span> span;
    if (is_timed) {
      span = clock_.begin(stream);
    }
    const int status = run();
    if (status == 0 && span && clock_.end(*span, stream)) {
      const std::lock_guard lock(mutex_);
      // Loading a kernel takes time that says nothing about the kernel.
      running_.push_back({.turn = turn,
                          .span = *std::move(span),
                          .least_ns = turn.is_first() ? kNever : least_ns});
    } else if (!is_refusal(status)) {
      dispatcher_.abandon(turn);
    }
    return status;
  }

  // Enqueues runs in one graph, twice: while the first ones run, the host enqueues the timed ones.
  std::optional<Trial> time_burst(const Dispatcher::Turn& turn, cuda::Stream stream,
                                  const Again& again) {
    const RelaxedCaptures relaxed(*driver_);
    const int runs = static_cast<int>(
        std::clamp(std::ceil(kBurstNs / turn.at_most_ns()), 1.0, double{kMostRuns}));
    const std::lock_guard lock(capture_mutex_);
    const cuda::Stream capturing = capturing_stream();
    if (capturing == nullptr) {
      return std::nullopt;
    }
    auto graph = cuda::CapturedGraph::capture(*driver_, capturing, [&]() -> Status {
      for (int run = 0; run < runs; ++run) {
        if (const int status = again(capturing); status != 0) {
          return fail(ErrorCode::kUnsupported, "the library refuses a capture: ", status);
        }
      }
      return {};
    });
    if (!graph || !graph->launch(stream)) {
      return std::nullopt;
    }
    auto span = clock_.begin(stream);
    if (!span || !graph->launch(stream) || !clock_.end(*span, stream)) {
      return std::nullopt;
    }
    // Where the bound was far off, there were too few runs to hide the launch.
    return Trial{.turn = turn,
                 .span = *std::move(span),
                 .runs = runs,
                 .least_ns = runs < kMostRuns ? turn.at_most_ns() / 2 : 0,
                 .graph = *std::move(graph)};
  }

  // Returns the current device's stream for captures, or null where the driver refuses to make one.
  cuda::Stream capturing_stream() {
    int device = -1;
    if (driver_->context_device(&device) != cuda::kDriverSuccess) {
      return nullptr;
    }
    cuda::Stream& stream = capturing_[device];
    if (stream == nullptr &&
        driver_->stream_create(&stream, cuda::kStreamNonBlocking) != cuda::kDriverSuccess) {
      stream = nullptr;
    }
    return stream;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  std::shared_ptr<const cuda::DriverApi> driver_;
  cuda::EventClock clock_;
  Dispatcher& dispatcher_;
  TrialBudget budget_;
  ForkSafeMutex mutex_;
  std::vector<Trial> running_;
  ForkSafeMutex capture_mutex_;
  std::map<int, cuda::Stream> capturing_;  // by device, under capture_mutex_
};

}  // namespace foretune::dispatch_internal
