#include "foretune/cuda/stopwatch.h"

#include <algorithm>
#include <cstddef>

#include "foretune/base/check.h"
#include "foretune/base/clock.h"

namespace foretune::cuda {
namespace {

constexpr double kNsPerS = 1e9;
constexpr double kNsPerMs = 1e6;
// At least this share of the time of a first run counts, whatever the host did meanwhile.
constexpr double kLeastShare = 1.0 / 4;

}  // namespace

Stopwatch::~Stopwatch() {
  graph_.reset();  // it records the events
  for (const Event event : events_) {
    device_.api().event_destroy(event);
  }
}

Event Stopwatch::event(std::size_t index) {
  while (events_.size() <= index) {
    Event made = nullptr;
    device_.must(device_.api().event_create(&made, 0), "cuEventCreate");
    events_.push_back(made);
  }
  return events_[index];
}

Result<double> Stopwatch::first_run(const Enqueue& enqueue) {
  // The host waits until the first run has loaded its kernel, so that the second can follow at
  // once.
  FORETUNE_TRY_STATUS(enqueue(0));
  const DriverApi& api = device_.api();
  event(1);  // makes both, so that the clock does not run meanwhile
  const double begin_s = monotonic_s();
  device_.must(api.event_record(event(0), device_.stream()), "cuEventRecord");
  FORETUNE_TRY_STATUS(enqueue(0));
  device_.must(api.event_record(event(1), device_.stream()), "cuEventRecord");
  const double enqueuing_ns = kNsPerS * (monotonic_s() - begin_s);
  device_.synchronize();
  float milliseconds = 0;
  device_.must(api.event_elapsed_ms(&milliseconds, event(0), event(1)), "cuEventElapsedTime");
  const double elapsed_ns = kNsPerMs * static_cast<double>(milliseconds);
  // A device that has finished the first run waits for the host to enqueue the second.
  return std::max(elapsed_ns - enqueuing_ns, kLeastShare * elapsed_ns);
}

Status Stopwatch::capture(const Windows& windows, const Enqueue& enqueue, const Prepare& prepare) {
  const DriverApi& api = device_.api();
  if (!prepare) {
    // Earlier work has left other data in the cache, which would make the first window slower.
    FORETUNE_TRY_STATUS(enqueue(0));
  }
  for (std::int32_t window = 0; window < windows.windows; ++window) {
    if (prepare) {
      prepare();
    }
    const auto first = 2 * static_cast<std::size_t>(window);
    device_.must(api.event_record_with_flags(event(first), device_.stream(), kEventRecordExternal),
                 "cuEventRecordWithFlags");
    for (std::int64_t run = 0; run < windows.runs; ++run) {
      FORETUNE_TRY_STATUS(enqueue(run));
    }
    device_.must(
        api.event_record_with_flags(event(first + 1), device_.stream(), kEventRecordExternal),
        "cuEventRecordWithFlags");
  }
  return {};
}

Status Stopwatch::record(const Windows& windows, const Enqueue& enqueue, const Prepare& prepare) {
  FORETUNE_CHECK(windows.windows >= 1 && windows.windows <= kMaxWindows && windows.runs >= 1);
  if (graph_ && recorded_ == windows) {
    return {};
  }
  graph_.reset();
  event(2 * static_cast<std::size_t>(windows.windows) - 1);  // makes all events before capturing
  Status enqueued;
  auto graph = CapturedGraph::capture(device_.api(), device_.stream(), [&] {
    enqueued = capture(windows, enqueue, prepare);
    return enqueued;
  });
  FORETUNE_TRY_STATUS(enqueued);
  Device::must(graph ? Status() : fail_because(graph.error()));
  graph_ = *std::move(graph);
  recorded_ = windows;
  return {};
}

void Stopwatch::time(std::vector<double>& windows_ns) {
  FORETUNE_CHECK(graph_.has_value());
  const DriverApi& api = device_.api();
  Device::must(graph_->launch(device_.stream()));
  device_.synchronize();
  for (std::int32_t window = 0; window < recorded_.windows; ++window) {
    const auto first = 2 * static_cast<std::size_t>(window);
    float milliseconds = 0;
    device_.must(api.event_elapsed_ms(&milliseconds, event(first), event(first + 1)),
                 "cuEventElapsedTime");
    windows_ns.push_back(kNsPerMs * static_cast<double>(milliseconds) /
                         static_cast<double>(recorded_.runs));
  }
}

}  // namespace foretune::cuda
