#include "foretune/features/tables/ck_tiling.h"

#include <algorithm>
#include <cmath>

#include "foretune/interop/ck/ck_kernels.h"

namespace foretune::features_internal {
namespace {

double flops_per_ns(const GpuView& gpu, const TiledProduct& product) {
  return gpu.flops_per_ns * 2 / product.element_bytes;
}

double resident_blocks(const GpuView& gpu, double step_bytes, double waves) {
  return std::max(1.0, std::min(std::floor(gpu.shared_bytes / step_bytes),
                                std::floor(gpu.waves_per_unit / waves)));
}

}  // namespace

GpuView GpuView::of(const Hardware& hardware) {
  const auto known = [&](HardwareValue value, double fallback) {
    const double number = hardware.get(value);
    return number > 0 ? number : fallback;
  };
  GpuView gpu;
  gpu.units = known(HardwareValue::kCores, 1);
  gpu.shared_bytes = known(HardwareValue::kL1Bytes, 65536);
  gpu.waves_per_unit =
      known(HardwareValue::kThreadsPerCore, 2048) / known(HardwareValue::kWarpSize, 64);
  gpu.flops_per_ns = known(HardwareValue::kTensorPeakGflops, gpu.units * 4000);
  gpu.bytes_per_ns = known(HardwareValue::kBandwidthAllGbs, gpu.units * 20);
  return gpu;
}

std::span<const FeatureInfo> tiling_columns() {
  static constexpr std::array kColumns{
      of_both("memory_share",
              "local memory of a block, all its buffers, over that of a compute unit"),
      of_both("resident_blocks", "blocks that fit a compute unit by local memory and waves"),
      of_both("use_m", "useful share of all tiles' rows"),
      of_both("use_n", "useful share of all tiles' columns"),
      of_both("use_k", "useful share of all steps' depth"),
      of_both("use_tile", "useful share of all tiles"),
      of_both("log2_tiles", "log2 of the tiles of all products and parts of the depth"),
      of_both("log2_tiles_per_unit", "log2 of tiles over compute units"),
      of_both("waves", "tiles per compute unit, rounded up, at most 64"),
      of_both("wave_use", "tiles over the places of all waves of tiles"),
      of_both("resident_wave_use", "the same with as many blocks on a compute unit as fit"),
      of_both("k_steps", "steps along the depth of one tile"),
      of_both("log2_k_per_unit", "log2 of the depth that a busy compute unit goes through"),
      of_both("log2_critical_work",
              "log2 of the multiply-adds of the busiest compute unit over an even share"),
      of_both("log2_traffic", "log2 of the bytes all tiles load over the bytes of both operands"),
      of_both("log2_compute_ns", "log2 of the busiest compute unit's time at the peak, in ns"),
      of_both("log2_load_ns", "log2 of the time to load all tiles from memory, in ns"),
      of_both("log2_estimate_ns",
              "log2 of an estimated time in ns: the larger of computing and of moving a quarter "
              "of the loads, with the result's parts, and a start"),
      of_both("log2_estimate_over_roofline", "log2 of the estimate over the roofline time"),
      of_both("m_over_tile", "m over the tile's rows, at most 64"),
      of_both("n_over_tile", "n over the tile's columns, at most 64"),
      of_both("k_over_tile", "k over the step's depth, at most 64"),
  };
  return kColumns;
}

double roofline_ns(const GpuView& gpu, const TiledProduct& product) {
  const double flops = 2 * product.m * product.n * product.k * product.batch;
  return std::max(flops / flops_per_ns(gpu, product),
                  (product.operand_bytes + product.result_bytes) / gpu.bytes_per_ns);
}

double busiest_bytes(const GpuView& gpu, const TiledProduct& product, const Tiling& tiling) {
  const double tiles =
      ceil_div(product.m, tiling.m) * ceil_div(product.n, tiling.n) * product.batch * tiling.splits;
  const double depth = ceil_div(ceil_div(product.k, tiling.splits), tiling.k) * tiling.k;
  return ceil_div(tiles, gpu.units) * product.element_bytes *
         ((tiling.m + tiling.n) * depth + tiling.m * tiling.n);
}

void put_tiling(const GpuView& gpu, const TiledProduct& product, const Tiling& tiling,
                ColumnWriter& writer) {
  const double depth = ceil_div(product.k, tiling.splits);
  const double tiles_m = ceil_div(product.m, tiling.m);
  const double tiles_n = ceil_div(product.n, tiling.n);
  const double steps = ceil_div(depth, tiling.k);
  const double tiles = tiles_m * tiles_n * product.batch * tiling.splits;
  const double step_bytes =
      (tiling.m + tiling.n) * tiling.k * product.element_bytes * tiling.buffers;
  const double resident = resident_blocks(gpu, step_bytes, tiling.waves);
  const double waves = ceil_div(tiles, gpu.units);
  const double places = ceil_div(tiles, gpu.units * resident) * gpu.units * resident;
  const double use_m = product.m / (tiles_m * tiling.m);
  const double use_n = product.n / (tiles_n * tiling.n);
  const double use_k = product.k / (tiling.splits * steps * tiling.k);
  const double work = tiling.m * tiling.n * steps * tiling.k;  // of a tile
  const double all_work = product.m * product.n * product.k * product.batch;
  const double loaded = tiles * (tiling.m + tiling.n) * steps * tiling.k * product.element_bytes;
  const double compute_ns = 2 * waves * work / (flops_per_ns(gpu, product) / gpu.units);
  const double load_ns = loaded / gpu.bytes_per_ns;
  // Caches serve most of the repeated loads: about a quarter of them reach memory. A depth in parts
  // adds up as many results.
  constexpr double kMissed = 0.25;
  constexpr double kStartNs = 1000;
  const double moved_ns = std::max(kMissed * loaded, product.operand_bytes) / gpu.bytes_per_ns +
                          product.result_bytes * (2 * tiling.splits - 1) / gpu.bytes_per_ns;
  const double estimate_ns = std::max(compute_ns, moved_ns) + kStartNs;
  writer.put(step_bytes / gpu.shared_bytes);
  writer.put(resident);
  writer.put(use_m);
  writer.put(use_n);
  writer.put(use_k);
  writer.put(use_m * use_n * use_k);
  writer.put(std::log2(tiles));
  writer.put(std::log2(tiles / gpu.units));
  writer.put(std::min(64.0, waves));
  writer.put(tiles / (waves * gpu.units));
  writer.put(tiles / places);
  writer.put(steps);
  writer.put(std::log2(tiles * steps * tiling.k / std::min(tiles, gpu.units)));
  writer.put(std::log2(waves * work * gpu.units / all_work));
  writer.put(std::log2(loaded / product.operand_bytes));
  writer.put(std::log2(compute_ns));
  writer.put(std::log2(load_ns));
  writer.put(std::log2(estimate_ns));
  writer.put(std::log2(estimate_ns / roofline_ns(gpu, product)));
  writer.put(std::min(64.0, product.m / tiling.m));
  writer.put(std::min(64.0, product.n / tiling.n));
  writer.put(std::min(64.0, product.k / tiling.k));
}

double ck_buffers(std::int32_t pipeline) {
  const bool doubled = pipeline == static_cast<std::int32_t>(CkPipeline::kCompV4) ||
                       pipeline == static_cast<std::int32_t>(CkPipeline::kPreshuffleV2);
  return doubled ? 2 : 1;
}

}  // namespace foretune::features_internal
