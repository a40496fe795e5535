// The config schemas of Triton's GEMM kernels, and a config of the family triton as a struct. All
// of them have the same tile:
//
//   triton-gemm    block_m block_n block_k group_m num_stages num_warps
//   triton-matmul  template, then the tile; template 0 is the choice of NVIDIA's library, so that
//                  default, peer and possible pick are one thing
//   diode-triton   the tile, then the flags of torch-diode's documents: even_k allow_tf32
//                  use_fast_accum acc_type
//
// Thread safety: plain values and constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/space/config.h"

namespace foretune {

// Parameters of the tile.
inline constexpr std::size_t kTritonTileWords = 6;

const ConfigSchema& triton_gemm_schema();
const ConfigSchema& triton_matmul_schema();
const ConfigSchema& diode_triton_schema();

enum class TritonTemplate : std::int32_t {
  kLibrary = 0,     // what cuBLASLt's heuristic names first
  kTile = 1,        // a tile a block, loads through pointers
  kPersistent = 2,  // a block a multiprocessor, loads through tensor descriptors (TMA)
};

// A config of triton-matmul:
//
//   template=0 block_m=0 block_n=0 block_k=0 group_m=0 num_stages=0 num_warps=0
//   template=1 block_m=128 block_n=256 block_k=64 group_m=8 num_stages=3 num_warps=8
struct TritonConfig {
  TritonTemplate kernel = TritonTemplate::kLibrary;
  std::int32_t block_m = 0;
  std::int32_t block_n = 0;
  std::int32_t block_k = 0;
  std::int32_t group_m = 0;     // rows of tiles that run side by side
  std::int32_t num_stages = 0;  // steps of block_k in flight
  std::int32_t num_warps = 0;

  // Errors: kMismatch for a config of another schema, kInvalidArgument for numbers that are none.
  static Result<TritonConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const TritonConfig&) const = default;
};

}  // namespace foretune
