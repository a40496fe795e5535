// Features of tiled GPU kernels: what a tile costs in registers and shared memory, how the tiles
// fill the device in waves, how much of them is useful.
#include <array>

#include "foretune/features/column_table.h"

namespace foretune::features_internal {
namespace {

constexpr std::array<std::string_view, 6> kParameters{"block_m", "block_n",    "block_k",
                                                      "group_m", "num_stages", "num_warps"};

constexpr std::array kConfigColumns{
    FeatureInfo{"block_m", FeatureKind::kConfig, "rows of a tile"},
    FeatureInfo{"block_n", FeatureKind::kConfig, "columns of a tile"},
    FeatureInfo{"block_k", FeatureKind::kConfig, "depth of one step"},
    FeatureInfo{"group_m", FeatureKind::kConfig, "rows of tiles that run side by side"},
    FeatureInfo{"num_stages", FeatureKind::kConfig, "steps in flight"},
    FeatureInfo{"num_warps", FeatureKind::kConfig, "warps of a block"},
    FeatureInfo{"tile_elements", FeatureKind::kConfig, "elements of a tile of C"},
    FeatureInfo{"tile_perimeter", FeatureKind::kConfig, "block_m + block_n"},
    FeatureInfo{"tile_aspect", FeatureKind::kConfig, "log2 of block_m / block_n"},
    FeatureInfo{"accumulators_per_thread", FeatureKind::kConfig, "elements of C each thread holds"},
    FeatureInfo{"stage_elements", FeatureKind::kConfig, "elements of A and B in all stages"},
    FeatureInfo{"flops_per_loaded_element", FeatureKind::kConfig,
                "block_m block_n / (block_m + block_n)"},
};

constexpr std::array kInteractionColumns{
    FeatureInfo{"use_m", FeatureKind::kInteraction, "useful share of the tiles' rows"},
    FeatureInfo{"use_n", FeatureKind::kInteraction, "useful share of the tiles' columns"},
    FeatureInfo{"use_k", FeatureKind::kInteraction, "useful share of the steps' depth"},
    FeatureInfo{"use_tile", FeatureKind::kInteraction, "useful share of the tiles"},
    FeatureInfo{"log2_tiles", FeatureKind::kInteraction, "log2 of the number of tiles"},
    FeatureInfo{"waves", FeatureKind::kInteraction, "tiles per multiprocessor, rounded up"},
    FeatureInfo{"wave_use", FeatureKind::kInteraction,
                "tiles over the places of all waves, one tile per multiprocessor"},
    FeatureInfo{"resident_blocks", FeatureKind::kInteraction,
                "blocks that fit a multiprocessor by shared memory, threads and registers"},
    FeatureInfo{"resident_waves", FeatureKind::kInteraction, "waves of resident blocks"},
    FeatureInfo{"resident_wave_use", FeatureKind::kInteraction,
                "tiles over the places of all resident waves"},
    FeatureInfo{"k_trips", FeatureKind::kInteraction, "steps over the depth"},
    FeatureInfo{"k_trips_per_stage", FeatureKind::kInteraction, "steps over pipeline stages"},
    FeatureInfo{"log2_critical_work", FeatureKind::kInteraction,
                "log2 of the multiply-adds of the busiest multiprocessor over an even share"},
    FeatureInfo{"log2_traffic", FeatureKind::kInteraction,
                "log2 of the bytes all tiles load over the bytes of A and B"},
    FeatureInfo{"log2_load_ns", FeatureKind::kInteraction,
                "log2 of the time to load them from memory, in ns"},
    FeatureInfo{"log2_estimate_ns", FeatureKind::kInteraction,
                "log2 of the larger of compute and load time, plus filling the pipeline, in ns"},
    FeatureInfo{"m_over_block", FeatureKind::kInteraction, "m over block_m, at most 64"},
    FeatureInfo{"n_over_block", FeatureKind::kInteraction, "n over block_n, at most 64"},
    FeatureInfo{"group_use", FeatureKind::kInteraction, "useful share of the groups of tile rows"},
};

class GemmTritonTable final : public GemmTable {
 public:
  GemmTritonTable() : GemmTable("gemm-triton", kParameters, kConfigColumns, kInteractionColumns) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const double block_m = words[0];
    const double block_n = words[1];
    const double block_k = words[2];
    const double stages = words[4];
    const double warps = words[5];
    std::size_t i = 0;
    for (; i < kParameters.size(); ++i) {
      out[i] = words[i];
    }
    out[i++] = block_m * block_n;
    out[i++] = block_m + block_n;
    out[i++] = std::log2(block_m / block_n);
    out[i++] = block_m * block_n / (32 * warps);
    out[i++] = stages * block_k * (block_m + block_n);
    out[i++] = block_m * block_n / (block_m + block_n);
  }

 private:
  struct Limits {
    double shared_bytes = 0;
    double threads = 0;
    double registers = 0;
    static Limits of(const GemmView& view) {
      const auto known = [](double number, double fallback) {
        return number > 0 ? number : fallback;
      };
      return {known(view.shared_bytes, 164.0 * 1024), known(view.threads_per_core, 2048),
              known(view.register_file_bytes, 256.0 * 1024) / 4};
    }
  };

  static double resident_blocks(const GemmView& view, const Limits& limits, double block_m,
                                double block_n, double block_k, double stages, double warps) {
    // A kilobyte of shared memory is kept by the system for every block; 32 registers a thread
    // cover addresses and operands beside the accumulators.
    const double shared = stages * block_k * (block_m + block_n) * view.bytes_per_element + 1024;
    const double registers = block_m * block_n + 32 * 32 * warps;
    const double blocks = std::min({std::floor(limits.shared_bytes / shared),
                                    std::floor(limits.threads / (32 * warps)),
                                    std::floor(limits.registers / registers), 32.0});
    return std::max(1.0, blocks);
  }

  void candidate(const GemmView& view, std::span<const std::int32_t> words,
                 ColumnWriter& writer) const override {
    const Limits limits = Limits::of(view);
    const double block_m = words[0];
    const double block_n = words[1];
    const double block_k = words[2];
    const double group_m = words[3];
    const double stages = words[4];
    const double warps = words[5];
    const double tiles_m = ceil_div(view.m, block_m);
    const double tiles_n = ceil_div(view.n, block_n);
    const double tiles = tiles_m * tiles_n * view.batch;
    const double trips = ceil_div(view.k, block_k);
    const double waves = ceil_div(tiles, view.cores);
    const double resident = resident_blocks(view, limits, block_m, block_n, block_k, stages, warps);
    const double resident_waves = ceil_div(tiles, view.cores * resident);
    const double use_m = view.m / (tiles_m * block_m);
    const double use_n = view.n / (tiles_n * block_n);
    const double use_k = view.k / (trips * block_k);
    const double critical = waves * block_m * block_n * trips * block_k;
    const double even = view.m * view.n * view.k * view.batch / view.cores;
    const double loaded = tiles * (block_m + block_n) * trips * block_k * view.bytes_per_element;
    const double operands =
        (view.m * view.k + view.k * view.n) * view.batch * view.bytes_per_element;
    const double load_ns = loaded / view.bytes_per_ns;
    const double compute_ns = 2 * critical * view.cores / view.peak_flops_per_ns;
    // L2 serves most of the repeated loads: about a quarter of them reach memory.
    const double fill_ns = 500 + 100 * stages;
    writer.put(use_m);
    writer.put(use_n);
    writer.put(use_k);
    writer.put(use_m * use_n * use_k);
    writer.put(std::log2(tiles));
    writer.put(waves);
    writer.put(tiles / (waves * view.cores));
    writer.put(resident);
    writer.put(resident_waves);
    writer.put(tiles / (resident_waves * view.cores * resident));
    writer.put(trips);
    writer.put(trips / stages);
    writer.put(std::log2(critical / even));
    writer.put(std::log2(loaded / operands));
    writer.put(std::log2(load_ns));
    writer.put(std::log2(std::max(compute_ns, 0.25 * load_ns) + fill_ns));
    writer.put(std::min(64.0, view.m / block_m));
    writer.put(std::min(64.0, view.n / block_n));
    writer.put(edge_use(tiles_m, group_m));
  }
};

}  // namespace

const FeatureTable& gemm_triton_table() {
  static const GemmTritonTable table;
  return table;
}

}  // namespace foretune::features_internal
