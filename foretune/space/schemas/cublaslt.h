// A config of the family cublaslt: the values that cublasLtMatmulAlgoConfigSetAttribute takes, or a
// rank in the answer of the library's own heuristic.
//
//   heuristic=0 algorithm=66 tile=23 stages=35 split_k=1 reduction=0 swizzle=0 custom=4 cluster=3
//   inner=0
//
// Numbers are the library's: a tile is a cublasLtMatmulTile_t, a cluster a cublasLtClusterShape_t.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/space/config.h"

namespace foretune {

inline constexpr std::int32_t kCublasltHeuristicRanks = 8;

struct CublasltConfig {
  std::int32_t heuristic = 0;  // 1..8: this rank of the heuristic's answer; all others are 0 then
  std::int32_t algorithm = 0;
  std::int32_t tile = 0;
  std::int32_t stages = 0;
  std::int32_t split_k = 0;    // 1: not split
  std::int32_t reduction = 0;  // of the split's parts: cublasLtReductionScheme_t
  std::int32_t swizzle = 0;
  std::int32_t custom = 0;
  std::int32_t cluster = 0;
  std::int32_t inner = 0;

  static CublasltConfig rank(std::int32_t heuristic) { return {.heuristic = heuristic}; }
  // Errors: kMismatch for a config of another schema, kInvalidArgument for numbers below 0.
  static Result<CublasltConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const CublasltConfig&) const = default;
};

const ConfigSchema& cublaslt_schema();

// Positions of the values.
enum class CublasltField : std::uint8_t {
  kHeuristic = 0,
  kAlgorithm,
  kTile,
  kStages,
  kSplitK,
  kReduction,
  kSwizzle,
  kCustom,
  kCluster,
  kInner,
};

}  // namespace foretune
