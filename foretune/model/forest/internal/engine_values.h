// How the engine sees the values of features, when it is built and when it is asked. Internal to
// the module. Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/model/forest/engine_kernels.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

inline std::uint8_t state_of(bool outcome) { return outcome ? kEngineTrue : kEngineFalse; }

inline double flushed(double value) { return std::fabs(value) > kForestZero ? value : 0.0; }

inline bool is_zero_or_nan(double value) { return !(std::fabs(value) > kForestZero); }

inline std::size_t count_below(const std::vector<double>& thresholds, std::size_t count,
                               double value) {
  const auto end = thresholds.begin() + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(std::lower_bound(thresholds.begin(), end, value) -
                                  thresholds.begin());
}

inline bool is_missing(Forest::Missing missing, double value) {
  switch (missing) {
    case Forest::Missing::kNone:
      return false;
    case Forest::Missing::kZero:
      return is_zero_or_nan(value);
    case Forest::Missing::kNan:
    case Forest::Missing::kCategorical:
      return std::isnan(value);
  }
  return false;
}

}  // namespace foretune
