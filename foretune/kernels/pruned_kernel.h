// Sums of products with the few weights that a pruned filter has kept, with vectors along points.
// The input is there as planes, one for each weight's channel and place, so that the products of
// weight w of a filter are
//
//   sum[point] += w.value * planes[w.offset + point]
//
// A kernel computes a strip: some whole vectors of points, for a number of filters. It reads those
// points at each offset, and no float before or behind them: the caller needs no slack.
//
// Thread safety: free functions on constant tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "foretune/hardware/cpu.h"

namespace foretune {

struct PrunedWeight {
  std::int32_t offset = 0;  // in floats
  float value = 0;
};

struct PrunedStrip {
  const float* planes = nullptr;  // of the strip's first point; fastest on a vector's boundary
  const PrunedWeight* weights = nullptr;
  // The weights of filter f are those from ends[f] to ends[f + 1], without the latter.
  const std::ptrdiff_t* ends = nullptr;
  std::ptrdiff_t filters = 0;
  const float* bias = nullptr;  // of the first filter, or null
  bool continues = false;       // adds to the sums that are there, not to the bias
  float floor = -std::numeric_limits<float>::infinity();
  float* sums = nullptr;  // of the first filter and point
  std::ptrdiff_t filter_step = 0;
};

inline constexpr int kMaxPrunedVectors = 16;

struct PrunedKernels {
  using Run = void (*)(const PrunedStrip& strip);
  std::ptrdiff_t lanes = 0;
  int vectors = 0;                   // that a strip may have
  Run runs[kMaxPrunedVectors] = {};  // NOLINT(*-avoid-c-arrays): for strips of 1, 2, ... vectors
};

// Returns the kernels, or nullptr when this build has none for `isa` or this CPU cannot run them.
const PrunedKernels* pruned_kernels(CpuIsa isa);

}  // namespace foretune
