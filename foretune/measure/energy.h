// Measures the energy of a run with a meter that only counts the total energy of the device: the
// run is repeated for windows of a fifth of a second, and a window's joules over its runs are one
// sample.
//
//   FORETUNE_TRY(EnergyMeter meter, EnergyMeter::open());
//   FORETUNE_TRY(const MetricValue energy,
//                measure_energy([&] { run.run(); return Status(); }, median_ns,
//                               [&] { return meter.read_j(); }, now_ns, {}));
//
// A meter's count stands still between two updates (a millisecond for a processor, a tenth of a
// second for some GPUs). Every window therefore begins and ends when the count has just moved, and
// lasts longer where updates are rare. On an H100, windows of a second varied by 1.4 % this way,
// and by 5 % when they ended at any time; the readings at their ends, during which nothing runs,
// made the figure 1 % too high.
//
// Idle power is not subtracted. The figure is the whole energy of the package, or the board, during
// a run, including idle cores, caches, memory and the work of other processes. A slow run pays more
// for them than a fast one, and should, because the machine is on while it runs. On a shared
// machine the figure means little: a neighbour's work counts as the run's, and changes from window
// to window. Compare configs on one machine with nothing else running; a CpuLoadMeter says whether
// something was.
//
// Thread safety: that of the callables. Cost: protocol.windows windows, one more update of the
// meter in front, and at least one run for each.
#pragma once

#include <cstdint>
#include <functional>

#include "foretune/base/result.h"
#include "foretune/metrics/metric.h"

namespace foretune {

struct EnergyProtocol {
  double window_ns = 2e8;  // a window holds as many runs as it takes to reach this
  int windows = 3;
  // How long the runs continue until the meter moves, before the first window and after each.
  double max_wait_ns = 2e9;
  // How many runs a call makes: a device is given many at once.
  std::int64_t runs_per_call = 1;

  // For meters such as NVML's, which move ten times a second and take milliseconds to read.
  static EnergyProtocol for_device() { return {.window_ns = 1e9, .max_wait_ns = 5e9}; }
};

// Returns the metric energy_j: joules of one run, the median over the windows. Its spread is the
// relative interquartile range; its samples are the windows.
//   run      makes protocol.runs_per_call runs and returns when they are done
//   run_ns   the rough time of one run: decides how many may follow each other unobserved at first
//   read_j   joules since some fixed moment, never decreasing, with a counter's wraps resolved
//   now_ns   a monotonic clock
// Errors: those of `run` and `read_j`, at once and unchanged; kInvalidArgument for a protocol or a
// time that makes no sense; kUnsupported when the meter does not move within max_wait_ns; kCorrupt
// when it decreases.
Result<MetricValue> measure_energy(const std::function<Status()>& run, double run_ns,
                                   const std::function<Result<double>()>& read_j,
                                   const std::function<std::int64_t()>& now_ns,
                                   const EnergyProtocol& protocol);

}  // namespace foretune
