// Times work that can be enqueued on a device's stream, by the device's own clock. All windows of a
// measurement are one CUDA graph: runs follow each other with no host work in between, and the
// events that begin and end a window are nodes of the graph.
//
//   Stopwatch watch(device);
//   FORETUNE_TRY(const double rough_ns, watch.first_run(enqueue));
//   FORETUNE_TRY_STATUS(watch.record({.runs = 8, .windows = 5}, enqueue));
//   watch.time(windows_ns);  // as often as wanted
//
// Thread safety: one thread. Cost: recording takes about 100 us of the host; timing takes the time
// of the runs and about 20 us.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/captured_graph.h"
#include "foretune/cuda/device.h"

namespace foretune::cuda {

struct Windows {
  std::int64_t runs = 1;     // of each window
  std::int32_t windows = 1;  // at most kMaxWindows
  bool operator==(const Windows&) const = default;
};

class Stopwatch {
 public:
  static constexpr std::int32_t kMaxWindows = 32;
  // Enqueues run number `run` of a window.
  using Enqueue = std::function<Status(std::int64_t run)>;
  // Enqueues work that comes before a window, outside of its time. Without it, one run comes before
  // the first window.
  using Prepare = std::function<void()>;

  explicit Stopwatch(Device& device) : device_(device) {}
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Runs twice outside of any graph: the first run makes the driver load the kernel, the second is
  // timed. The time that the host took to enqueue it is subtracted, because a short first run is
  // over by then. So the result is rough: too short where the device did not wait, longer by the
  // gap between two launches, a few microseconds, where it did. Errors: those of `enqueue`.
  Result<double> first_run(const Enqueue& enqueue);
  // Makes the graph of these windows, unless it exists. Errors: those of `enqueue`.
  Status record(const Windows& windows, const Enqueue& enqueue, const Prepare& prepare);
  // Runs the graph and appends the time of one run in each window, in ns.
  void time(std::vector<double>& windows_ns);

 private:
  Event event(std::size_t index);
  Status capture(const Windows& windows, const Enqueue& enqueue, const Prepare& prepare);

  Device& device_;
  std::vector<Event> events_;
  std::optional<CapturedGraph> graph_;
  Windows recorded_;
};

}  // namespace foretune::cuda
