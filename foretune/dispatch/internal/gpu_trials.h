// Trials whose work goes on in streams of the caller: events time them, and nobody waits.
//
// Thread safety: all members, any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/cuda/event_clock.h"
#include "foretune/dispatch/dispatcher.h"

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

class GpuTrials {
 public:
  GpuTrials(std::shared_ptr<const cuda::DriverApi> driver, Dispatcher& dispatcher)
      : driver_(std::move(driver)), clock_(driver_), dispatcher_(dispatcher) {}

  // Runs a trial and times it; abandons the first of a kernel, when the driver loads it, and those
  // that cannot be timed. `run` returns the library's status. Where `is_refusal(status)`, the trial
  // is left for the caller to replace.
  template <class Run, class IsRefusal>
  int time(const Dispatcher::Turn& turn, cuda::Stream stream, const Run& run,
           const IsRefusal& is_refusal) {
    std::optional<cuda::EventClock::Span> span;
    if (!turn.is_first()) {
      span = clock_.begin(stream);
    }
    const int status = run();
    if (status == 0 && span && clock_.end(*span, stream)) {
      const std::lock_guard lock(mutex_);
      running_.push_back({turn, *std::move(span)});
    } else if (!is_refusal(status)) {
      dispatcher_.abandon(turn);
    }
    return status;
  }

  // Reports those whose work has ended.
  void report_ended() {
    const RelaxedCaptures relaxed(*driver_);
    const std::lock_guard lock(mutex_);
    std::erase_if(running_, [this](const Trial& trial) {
      const auto nanoseconds = clock_.read(trial.span);
      if (!nanoseconds) {
        dispatcher_.abandon(trial.turn);
      } else if (*nanoseconds) {
        dispatcher_.report(trial.turn, **nanoseconds);
      }
      return !nanoseconds || *nanoseconds;
    });
  }

  [[nodiscard]] bool may_time(cuda::Stream stream) const { return !clock_.is_capturing(stream); }

 private:
  struct Trial {
    Dispatcher::Turn turn;
    cuda::EventClock::Span span;
  };
  std::shared_ptr<const cuda::DriverApi> driver_;
  cuda::EventClock clock_;
  Dispatcher& dispatcher_;
  ForkSafeMutex mutex_;
  std::vector<Trial> running_;
};

}  // namespace foretune::dispatch_internal
