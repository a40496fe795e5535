// Features of tiled GPU kernels: the registers and shared memory of a tile, how the tiles fill the
// device in waves, how much of them is useful. The second table is for configs that begin with the
// number of a template; 0 is the library's own choice and has 0 in all columns about tiles. The
// third is for configs that end with the flags of torch-diode's documents. Mostly the flags are the
// same everywhere, and then they cost nothing.
#include <algorithm>
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/space/schemas/triton.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kConfigColumns{
    of_config("block_m", "rows of a tile"),
    of_config("block_n", "columns of a tile"),
    of_config("block_k", "depth of one step"),
    of_config("group_m", "rows of tiles that run side by side"),
    of_config("num_stages", "steps in flight"),
    of_config("num_warps", "warps of a block"),
    of_config("tile_elements", "elements of a tile of C"),
    of_config("tile_perimeter", "block_m + block_n"),
    of_config("tile_aspect", "log2 of block_m / block_n"),
    of_config("accumulators_per_thread", "elements of C each thread holds"),
    of_config("stage_elements", "elements of A and B in all stages"),
    of_config("flops_per_loaded_element", "block_m block_n / (block_m + block_n)"),
};

constexpr std::array kInteractionColumns{
    of_both("use_m", "useful share of the tiles' rows"),
    of_both("use_n", "useful share of the tiles' columns"),
    of_both("use_k", "useful share of the steps' depth"),
    of_both("use_tile", "useful share of the tiles"),
    of_both("log2_tiles", "log2 of the number of tiles"),
    of_both("waves", "tiles per multiprocessor, rounded up"),
    of_both("wave_use", "tiles over the places of all waves, one tile per multiprocessor"),
    of_both("resident_blocks",
            "blocks that fit a multiprocessor by shared memory, threads and registers"),
    of_both("resident_waves", "waves of resident blocks"),
    of_both("resident_wave_use", "tiles over the places of all resident waves"),
    of_both("k_trips", "steps over the depth"),
    of_both("k_trips_per_stage", "steps over pipeline stages"),
    of_both("log2_critical_work",
            "log2 of the multiply-adds of the busiest multiprocessor over an even share"),
    of_both("log2_traffic", "log2 of the bytes all tiles load over the bytes of A and B"),
    of_both("log2_load_ns", "log2 of the time to load them from memory, in ns"),
    of_both("log2_estimate_ns",
            "log2 of the larger of compute and load time, plus filling the pipeline, in ns"),
    of_both("m_over_block", "m over block_m, at most 64"),
    of_both("n_over_block", "n over block_n, at most 64"),
    of_both("group_use", "useful share of the groups of tile rows"),
};

// These columns come before and after those above.
constexpr std::array kTemplateColumn{
    as_categorical(of_config("template", "number of the template, 0 for the library")),
};
constexpr std::array kAlignmentColumn{
    of_both("aligned", "1 where all rows begin at a multiple of 8 elements, for a template"),
};

constexpr std::array kFlagColumns{
    of_config("even_k", "1 where k is taken for a multiple of block_k"),
    of_config("allow_tf32", "1 where f32 may be multiplied as tf32"),
    of_config("use_fast_accum", "1 where sums of fp8 may be less exact"),
    as_categorical(of_config("acc_type", "type of the sums")),
};

class GemmTritonTable final : public GemmTable {
 public:
  GemmTritonTable()
      : GemmTable("gemm-triton", triton_gemm_schema(), kConfigColumns, kInteractionColumns) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    tile_row(words, out);
  }

  // Writes the columns of a config's tile.
  static void tile_row(std::span<const std::int32_t> words, std::span<double> out) {
    const double block_m = at_least_1(words[0]);
    const double block_n = at_least_1(words[1]);
    const double block_k = words[2];
    const double stages = words[4];
    const double warps = at_least_1(words[5]);
    std::size_t i = 0;
    for (; i < kTritonTileWords; ++i) {
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
  // A tile in a file may have size 0, and groups and stages of 0 are Triton's own values for none.
  static double at_least_1(std::int32_t word) { return std::max(1, word); }

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

  // Values that depend on the tile alone, and are the same for all its stages, warps and groups.
  struct Tile {
    double block_m = 0;
    double block_n = 0;
    double block_k = 0;
    double tiles_m = 0;
    double tiles = 0;
    double trips = 0;
    double waves = 0;
    double use_m = 0;
    double use_n = 0;
    double use_k = 0;
    double wave_use = 0;
    double work = 0;  // of the busiest multiprocessor, over an even share
    double traffic = 0;
    double load_ns = 0;
    double compute_ns = 0;

    static Tile of(const GemmView& view, std::span<const std::int32_t> words) {
      Tile tile;
      tile.block_m = at_least_1(words[0]);
      tile.block_n = at_least_1(words[1]);
      tile.block_k = at_least_1(words[2]);
      tile.tiles_m = ceil_div(view.m, tile.block_m);
      const double tiles_n = ceil_div(view.n, tile.block_n);
      tile.tiles = tile.tiles_m * tiles_n * view.batch;
      tile.trips = ceil_div(view.k, tile.block_k);
      tile.waves = ceil_div(tile.tiles, view.cores);
      tile.use_m = view.m / (tile.tiles_m * tile.block_m);
      tile.use_n = view.n / (tiles_n * tile.block_n);
      tile.use_k = view.k / (tile.trips * tile.block_k);
      tile.wave_use = tile.tiles / (tile.waves * view.cores);
      const double critical = tile.waves * tile.block_m * tile.block_n * tile.trips * tile.block_k;
      const double even = view.m * view.n * view.k * view.batch / view.cores;
      const double loaded = tile.tiles * (tile.block_m + tile.block_n) * tile.trips * tile.block_k *
                            view.bytes_per_element;
      const double operands =
          (view.m * view.k + view.k * view.n) * view.batch * view.bytes_per_element;
      tile.work = critical / even;
      tile.traffic = loaded / operands;
      tile.load_ns = loaded / view.bytes_per_ns;
      tile.compute_ns = 2 * critical * view.cores / view.peak_flops_per_ns;
      return tile;
    }
  };

  static double resident_blocks(const GemmView& view, const Limits& limits, const Tile& tile,
                                double stages, double warps) {
    // The system reserves a kilobyte of shared memory for every block. 32 registers a thread cover
    // addresses and operands besides the accumulators.
    const double shared =
        stages * tile.block_k * (tile.block_m + tile.block_n) * view.bytes_per_element + 1024;
    const double registers = tile.block_m * tile.block_n + 32 * 32 * warps;
    const double blocks =
        std::min({floor_of(limits.shared_bytes / shared), floor_of(limits.threads / (32 * warps)),
                  floor_of(limits.registers / registers), 32.0});
    return std::max(1.0, blocks);
  }

  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    all_tiles(view, configs, 0, writer, [](std::size_t /*count*/, bool /*is_tile*/) {});
  }

 public:
  // Writes the columns of candidates whose tiles begin at value `at`. Pools list the configs of a
  // tile one after another. `then` writes further columns of `count` configs.
  template <class Then>
  static void all_tiles(const GemmView& view, ConfigWords configs, std::size_t at,
                        ColumnWriter& writer, const Then& then) {
    const std::span<const std::int32_t> words = configs.words();
    const std::size_t width = configs.width();
    const Limits limits = Limits::of(view);
    std::size_t count = 0;
    for (std::size_t first = 0; first * width < words.size(); first += count) {
      const auto rest = words.subspan(first * width);
      count = 1;
      while (count * width < rest.size() &&
             std::equal(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at) + 3,
                        rest.subspan(count * width).begin())) {
        ++count;
      }
      writer.start(first);
      // The number of the template may precede the tile.
      const bool is_tile = at == 0 || rest[0] != 0;
      if (is_tile) {
        same_tile(view, limits, rest.subspan(at, count * width - at), width, writer);
      } else {
        for (std::size_t i = 0; i < kInteractionColumns.size(); ++i) {
          writer.fill(count, 0);
        }
      }
      then(count, is_tile);
    }
  }

 private:
  static void same_tile(const GemmView& view, const Limits& limits,
                        std::span<const std::int32_t> words, std::size_t width,
                        ColumnWriter& writer) {
    const Tile tile = Tile::of(view, words);
    // The last config may be shorter than the distance to the next.
    const std::size_t count = (words.size() + width - 1) / width;
    writer.fill(count, tile.use_m);
    writer.fill(count, tile.use_n);
    writer.fill(count, tile.use_k);
    writer.fill(count, tile.use_m * tile.use_n * tile.use_k);
    writer.fill_log2(count, tile.tiles);
    writer.fill(count, tile.waves);
    writer.fill(count, tile.wave_use);
    const auto resident = writer.take(count);
    const auto resident_waves = writer.take(count);
    const auto resident_wave_use = writer.take(count);
    writer.fill(count, tile.trips);
    const auto trips_per_stage = writer.take(count);
    writer.fill_log2(count, tile.work);
    writer.fill_log2(count, tile.traffic);
    writer.fill_log2(count, tile.load_ns);
    const auto estimate = writer.take(count);
    writer.fill(count, std::min(64.0, view.m / tile.block_m));
    writer.fill(count, std::min(64.0, view.n / tile.block_n));
    const auto group_use = writer.take(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto config = words.subspan(i * width);
      const double stages = at_least_1(config[4]);
      // Most configs differ from the one before only in their warps.
      const bool same_stages = i > 0 && config[4] == words[(i - 1) * width + 4];
      const bool same_group = i > 0 && config[3] == words[(i - 1) * width + 3];
      resident[i] = resident_blocks(view, limits, tile, stages, at_least_1(config[5]));
      resident_waves[i] = ceil_div(tile.tiles, view.cores * resident[i]);
      resident_wave_use[i] = tile.tiles / (resident_waves[i] * view.cores * resident[i]);
      trips_per_stage[i] = tile.trips / stages;
      // L2 serves most of the repeated loads: about a quarter of them reach memory.
      estimate[i] =
          same_stages
              ? estimate[i - 1]
              : std::log2(std::max(tile.compute_ns, 0.25 * tile.load_ns) + (500 + 100 * stages));
      group_use[i] = same_group ? group_use[i - 1] : edge_use(tile.tiles_m, at_least_1(config[3]));
    }
  }
};

class GemmTritonTemplatesTable final : public GemmTable {
 public:
  GemmTritonTemplatesTable()
      : GemmTable("gemm-triton-templates", triton_matmul_schema(),
                  joined({kTemplateColumn, kConfigColumns}),
                  joined({kInteractionColumns, kAlignmentColumn}),
                  GemmProblemColumns::kWithStorage) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    out[0] = words[0];
    if (words[0] == 0) {
      std::fill(out.begin() + 1, out.end(), 0.0);
    } else {
      GemmTritonTable::tile_row(words.subspan(1), out.subspan(1));
    }
  }

 private:
  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    const double a = view.a_by_columns ? view.m : view.k;
    const double b = view.b_by_columns ? view.k : view.n;
    const bool is_aligned =
        a == 8 * floor_of(a / 8) && b == 8 * floor_of(b / 8) && view.n == 8 * floor_of(view.n / 8);
    GemmTritonTable::all_tiles(view, configs, 1, writer, [&](std::size_t count, bool is_tile) {
      writer.fill(count, is_aligned && is_tile ? 1 : 0);
    });
  }
};

class GemmTritonFlagsTable final : public GemmTable {
 public:
  GemmTritonFlagsTable()
      : GemmTable("gemm-triton-flags", diode_triton_schema(),
                  joined({kConfigColumns, kFlagColumns}), kInteractionColumns,
                  GemmProblemColumns::kWithStorage) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    GemmTritonTable::tile_row(words.first(kTritonTileWords), out.first(kConfigColumns.size()));
    const auto flags = words.subspan(kTritonTileWords);
    std::copy(flags.begin(), flags.end(), out.begin() + kConfigColumns.size());
  }

 private:
  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    GemmTritonTable::all_tiles(view, configs, 0, writer,
                               [](std::size_t /*count*/, bool /*is_tile*/) {});
  }
};

}  // namespace

const FeatureTable& gemm_triton_flags_table() {
  static const GemmTritonFlagsTable table;
  return table;
}

const FeatureTable& gemm_triton_templates_table() {
  static const GemmTritonTemplatesTable table;
  return table;
}

const FeatureTable& gemm_triton_table() {
  static const GemmTritonTable table;
  return table;
}

}  // namespace foretune::features_internal
