// Restores the time of a CK Tile run from figures that were rounded when they were printed. Its
// benchmarks print the latency in milliseconds with two decimals, so everything under 5 us is 0.00.
// The throughput of the same run, printed beside it, is often far more exact. Internal to the
// module.
//
//   restore_time({.latency_ms = 0.00, .tflops = 8.81, .flops = 3.5e7});  // 3.97 us, +- 0.06 %
//
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "foretune/base/result.h"

namespace foretune::dataset_internal {

struct CkFigures {
  std::optional<double> latency_ms;
  std::optional<double> tflops;
  std::optional<double> gb_s;
  // The work that the rates refer to; 0 when unknown.
  double flops = 0;
  double bytes = 0;
};

struct RestoredTime {
  double time_ns = 0;
  double relative_error = 0;      // half the width of the interval of possible times, relative
  bool from_rate = false;         // from throughput or bandwidth
  bool figures_disagree = false;  // then the latency is taken, however rounded
};

// Returns the distance to the farthest number that prints like this: half a unit of the last
// decimal, of at least two decimals.
double rounding_half_width(double printed);

// Returns the time by the most exact figure among latency, throughput and bandwidth. Errors:
// kCorrupt for figures that are negative or not finite, that contradict a latency of 0.00, or that
// do not determine the time.
Result<RestoredTime> restore_time(const CkFigures& figures);

}  // namespace foretune::dataset_internal
