// How much energy a run takes, by a meter that only counts what the whole device has taken so far:
// the run is repeated for windows of a fifth of a second, and a window's joules over its runs are
// one sample.
//
//   FORETUNE_TRY(EnergyMeter meter, EnergyMeter::open());
//   FORETUNE_TRY(const MetricValue energy,
//                measure_energy([&] { run.run(); return Status(); }, median_ns,
//                               [&] { return meter.read_j(); }, now_ns, {}));
//
// A meter's count stands still between two updates (a millisecond for a processor, a tenth of a
// second for some GPUs). Every window therefore begins and ends where the count has just moved, and
// lasts longer than it should where that is rare. On an H100 windows of a second scattered by 1.4 %
// so, and by 5 % when they ended anywhere; the readings at their ends, during which nothing runs,
// made the figure 1 % too high.
//
// Nothing is subtracted for idle power. The figure is all that the package, or the board, took
// during a run: idle cores, caches, memory and everybody else's work are in it. A slow run pays
// more for them than a fast one, and should, because the machine is on while it runs. On a shared
// machine the figure says little: a neighbour's work counts as the run's, and changes from window
// to window. Compare configs on one machine with nothing beside them; a CpuLoadMeter tells whether
// that was so.
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
  // How long the runs go on for the meter to move, before the first window and behind each.
  double max_wait_ns = 2e9;
  // How many runs a call makes: a device is given many at once.
  std::int64_t runs_per_call = 1;

  // For meters as NVML's, which move ten times a second and take milliseconds to read.
  static EnergyProtocol for_device() { return {.window_ns = 1e9, .max_wait_ns = 5e9}; }
};

// The metric energy_j: joules of one run, the median over the windows; the spread is the
// interquartile range over the median, the samples are the windows.
//   run      makes protocol.runs_per_call runs and returns when they are done
//   run_ns   what one of them takes, roughly: how many may follow each other unwatched at first
//   read_j   joules since any moment, never less than before, a counter's wraps included
//   now_ns   a monotonic clock
// Errors: those of `run` and `read_j`, at once and as they are; kInvalidArgument for a protocol or
// a time that makes no sense; kUnsupported when the meter does not move within max_wait_ns;
// kCorrupt when it goes back.
Result<MetricValue> measure_energy(const std::function<Status()>& run, double run_ns,
                                   const std::function<Result<double>()>& read_j,
                                   const std::function<std::int64_t()>& now_ns,
                                   const EnergyProtocol& protocol);

}  // namespace foretune
