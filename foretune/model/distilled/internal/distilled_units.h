// The integer arithmetic of a distilled model's inputs, for the model and its ranker. Internal to
// the module. Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "foretune/model/distilled/distilled_model.h"

namespace foretune::distilled_units {

inline constexpr std::int64_t kLargestCount = std::numeric_limits<std::int32_t>::max();

// Returns log2 of a number from 1 to 2^50, in units of 1/4096. Between powers of two it
// approximates log2(1 + t) by t + 0.343 t (1 - t), which is at most 0.01 off and increasing. The
// network needs no more.
inline std::int64_t log2_units(std::int64_t value) {
  constexpr std::int64_t kUnit = DistilledModel::kUnit;
  const int exponent = 63 - std::countl_zero(static_cast<std::uint64_t>(value));
  const std::int64_t fraction =
      exponent >= 12 ? (value >> (exponent - 12)) - kUnit : (value << (12 - exponent)) - kUnit;
  return exponent * kUnit + fraction + ((fraction * (kUnit - fraction) * 1405) >> 24);
}

inline std::int64_t clamped_size(std::int64_t size) {
  return std::clamp<std::int64_t>(size, 1, kLargestCount);
}

// Returns what the network sees of a value.
inline std::int16_t standardised(std::int64_t value, std::int32_t mean, std::int32_t scale) {
  constexpr std::int64_t kUnit = DistilledModel::kUnit;
  return static_cast<std::int16_t>(
      std::clamp<std::int64_t>(((value - mean) * scale) >> 12, -kUnit, kUnit));
}

}  // namespace foretune::distilled_units
