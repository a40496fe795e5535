// How a matrix product in tiles fills a GPU: the columns that our tables for Composable Kernel's
// GEMM and convolutions have in common. Internal to the module. Thread safety: constant.
#pragma once

#include <array>
#include <span>

#include "foretune/features/column_table.h"
#include "foretune/features/feature_table.h"

namespace foretune::features_internal {

// Facts of the device; what is unknown becomes harmless.
struct GpuView {
  double units = 1;           // compute units
  double shared_bytes = 0;    // of a unit
  double waves_per_unit = 0;  // that a unit holds
  double flops_per_ns = 0;    // of all units, for elements of two bytes
  double bytes_per_ns = 0;    // from memory

  static GpuView of(const Hardware& hardware);
};

// A product, as often as `batch` says.
struct TiledProduct {
  double m = 1;
  double n = 1;
  double k = 1;
  double batch = 1;
  double element_bytes = 2;
  double operand_bytes = 0;  // of A and B in memory
  double result_bytes = 0;   // of C in memory
};

struct Tiling {
  double m = 1;
  double n = 1;
  double k = 1;
  double splits = 1;   // parts that the depth is cut into
  double buffers = 1;  // copies of a step in local memory
  double waves = 4;    // of a block
};

std::span<const FeatureInfo> tiling_columns();
void put_tiling(const GpuView& gpu, const TiledProduct& product, const Tiling& tiling,
                ColumnWriter& writer);

// Bytes that the busiest compute unit loads and stores: whole tiles, one at a time.
double busiest_bytes(const GpuView& gpu, const TiledProduct& product, const Tiling& tiling);

// Time that the product takes at least, in ns (Williams, Waterman and Patterson 2009).
double roofline_ns(const GpuView& gpu, const TiledProduct& product);

// Copies of a step in local memory that a pipeline of Composable Kernel keeps: two where it loads
// one while it computes on the other.
double ck_buffers(std::int32_t pipeline);

}  // namespace foretune::features_internal
