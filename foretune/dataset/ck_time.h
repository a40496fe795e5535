// The time of a CK Tile run from figures that were rounded when they were printed. Its benchmarks
// print the latency in milliseconds with two decimals, so everything under 5 us reads 0.00; the
// throughput printed beside it, of the same run, is often known far better. Internal to the module.
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
  // What the rates refer to; 0 when that is not known.
  double flops = 0;
  double bytes = 0;
};

struct RestoredTime {
  double time_ns = 0;
  double relative_error = 0;      // half the width of what the rounded figure may have been
  bool from_rate = false;         // not the latency's own
  bool figures_disagree = false;  // so the latency is taken, whatever its rounding
};

// The distance to the farthest number that prints like this: half of the last decimal that it has,
// where two decimals are the fewest.
double rounding_half_width(double printed);

// Of latency, throughput and bandwidth the one that leaves least open. Errors: kCorrupt for figures
// that are negative or not finite, that contradict a latency of 0.00, or that leave the time open.
Result<RestoredTime> restore_time(const CkFigures& figures);

}  // namespace foretune::dataset_internal
