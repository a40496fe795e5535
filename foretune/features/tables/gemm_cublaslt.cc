// Features of cuBLASLt's configs: the cost of a tile and of a cluster, how they fill the device in
// waves, the savings and costs of splitting the depth. A config that leaves the choice to the
// library's heuristic, or whose tile has an unknown number, has 0 in all columns about tiles.
#include <algorithm>
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/internal/cublaslt_tiles.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/space/schemas/cublaslt.h"

namespace foretune::features_internal {
namespace {

// Returns the value of a parameter. Numbers of the library are integers.
std::int32_t value_of(std::span<const std::int32_t> words, CublasltField field) {
  return words[static_cast<std::size_t>(field)];
}

// CUBLASLT_REDUCTION_SCHEME_*: the place where the parts of the depth are summed.
constexpr std::int32_t kInPlace = 1;      // in C, one part after another
constexpr std::int32_t kComputeType = 2;  // in a workspace, as they were computed

constexpr std::array kConfigColumns{
    of_config("heuristic", "rank in the library's heuristic, 0 for an explicit config"),
    as_categorical(of_config("algorithm", "number of the algorithm")),
    as_categorical(of_config("tile", "number of the tile")),
    as_categorical(of_config("stages", "number of the stages")),
    of_config("split_k", "parts that the depth is cut into"),
    as_categorical(of_config("reduction", "number of the scheme that sums the parts")),
    of_config("swizzle", "1 for tiles in another order than the grid's"),
    as_categorical(of_config("custom", "the algorithm's own option")),
    as_categorical(of_config("cluster", "number of the cluster shape")),
    as_categorical(of_config("inner", "number of the instruction's shape")),
    of_config("tile_m", "elements of a tile along the library's rows, which are our columns"),
    of_config("tile_n", "elements of a tile along the library's columns, which are our rows"),
    of_config("tile_elements", "elements of a tile of C"),
    of_config("tile_perimeter", "tile_m + tile_n"),
    of_config("tile_aspect", "log2 of tile_m / tile_n"),
    of_config("flops_per_loaded_element", "tile_m tile_n / (tile_m + tile_n)"),
    of_config("cluster_m", "tiles of a cluster along tile_m, 0 where the library chooses"),
    of_config("cluster_n", "tiles of a cluster along tile_n, 0 where the library chooses"),
    of_config("cluster_size", "tiles of a cluster, 0 where the library chooses"),
    of_config("cluster_tile_m", "elements of a cluster along tile_m"),
    of_config("cluster_tile_n", "elements of a cluster along tile_n"),
    of_config("stage_depth", "elements along k of one step, 0 where not known"),
    of_config("stage_count", "steps in shared memory, 0 where the library chooses"),
    // As measured times of Hopper's kernels show, two of the bits change the order of tiles, the
    // third the kind of kernel.
    of_config("custom_bit_0", "lowest bit of the custom option"),
    of_config("custom_bit_1", "the next"),
    of_config("custom_bit_2", "the third"),
};

constexpr std::array kInteractionColumns{
    of_both("use_m", "useful share of the tiles along m"),
    of_both("use_n", "useful share of the tiles along n"),
    of_both("use_tile", "useful share of the tiles"),
    of_both("cluster_use_m", "useful share of the clusters along m"),
    of_both("cluster_use_n", "useful share of the clusters along n"),
    of_both("log2_tiles", "log2 of the tiles of one product"),
    of_both("log2_units", "log2 of tiles times parts of the depth times products"),
    of_both("waves", "units per multiprocessor, rounded up"),
    of_both("wave_use", "units over the places of all waves, one unit per multiprocessor"),
    of_both("cluster_waves", "waves of whole clusters"),
    of_both("cluster_wave_use", "clusters over the places of all waves of clusters"),
    of_both("log2_split_depth", "log2 of the depth of a part"),
    of_both("k_trips", "steps over the depth of a part"),
    of_both("log2_critical_work",
            "log2 of the multiply-adds of the busiest multiprocessor over an even share"),
    of_both("log2_traffic", "log2 of the bytes all clusters load over the bytes of A and B"),
    of_both("log2_load_ns", "log2 of the time to load them from memory, in ns"),
    of_both("log2_reduction_ns", "log2 of 1 + the time to write and sum the parts, in ns"),
    of_both("log2_estimate_ns",
            "log2 of the larger of compute and memory time, plus summing and starting, in ns"),
    of_both("m_over_tile", "m over the tile's extent along it, at most 64"),
    of_both("n_over_tile", "n over the tile's extent along it, at most 64"),
    of_both("log2_tiles_m", "log2 of the tiles along m"),
    of_both("log2_tiles_n", "log2 of the tiles along n"),
    of_both("last_wave", "units of the last wave over the multiprocessors, 1 for a full one"),
};

// A config in our orientation, which is by rows of C: the library's rows are our columns.
struct Shape {
  bool is_known = false;
  double tile_m = 0;
  double tile_n = 0;
  // In tiles; one tile where the library chooses.
  double cluster_m = 1;
  double cluster_n = 1;
  double step_depth = 64;
  double splits = 1;
  std::int32_t reduction = 0;

  static Shape of(std::span<const std::int32_t> words) {
    const CublasltExtent tile = cublaslt_tile(value_of(words, CublasltField::kTile));
    const CublasltExtent cluster = cublaslt_cluster(value_of(words, CublasltField::kCluster));
    const CublasltStages stages = cublaslt_stages(value_of(words, CublasltField::kStages));
    Shape shape;
    shape.is_known = value_of(words, CublasltField::kHeuristic) == 0 && tile.rows > 0;
    shape.tile_m = tile.columns;
    shape.tile_n = tile.rows;
    shape.cluster_m = std::max<double>(1, cluster.columns);
    shape.cluster_n = std::max<double>(1, cluster.rows);
    shape.step_depth = stages.depth > 0 ? stages.depth : 64;
    shape.splits = std::max(1, value_of(words, CublasltField::kSplitK));
    shape.reduction = value_of(words, CublasltField::kReduction);
    return shape;
  }
};

class GemmCublasltTable final : public GemmTable {
 public:
  GemmCublasltTable()
      : GemmTable("gemm-cublaslt", cublaslt_schema(), kConfigColumns, kInteractionColumns,
                  GemmProblemColumns::kWithStorage) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    std::size_t i = 0;
    for (; i < words.size(); ++i) {
      out[i] = words[i];
    }
    if (value_of(words, CublasltField::kHeuristic) != 0) {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(i), out.end(), 0.0);
      return;
    }
    const CublasltExtent tile = cublaslt_tile(value_of(words, CublasltField::kTile));
    const CublasltExtent cluster = cublaslt_cluster(value_of(words, CublasltField::kCluster));
    const CublasltStages stages = cublaslt_stages(value_of(words, CublasltField::kStages));
    const double tile_m = tile.rows;
    const double tile_n = tile.columns;
    const double cluster_m = cluster.rows;
    const double cluster_n = cluster.columns;
    const bool is_known = tile_m > 0;
    out[i++] = tile_m;
    out[i++] = tile_n;
    out[i++] = tile_m * tile_n;
    out[i++] = tile_m + tile_n;
    out[i++] = is_known ? std::log2(tile_m / tile_n) : 0;
    out[i++] = is_known ? tile_m * tile_n / (tile_m + tile_n) : 0;
    out[i++] = cluster_m;
    out[i++] = cluster_n;
    out[i++] = cluster_m * cluster_n;
    out[i++] = tile_m * std::max(1.0, cluster_m);
    out[i++] = tile_n * std::max(1.0, cluster_n);
    out[i++] = stages.depth;
    out[i++] = stages.count;
    for (const int bit : {0, 1, 2}) {
      out[i++] = (value_of(words, CublasltField::kCustom) >> bit) & 1;
    }
  }

 private:
  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    for_each_config(configs, writer, [&](std::span<const std::int32_t> config) {
      const Shape shape = Shape::of(config);
      if (shape.is_known) {
        candidate(view, shape, writer);
      } else {
        for (std::size_t i = 0; i < kInteractionColumns.size(); ++i) {
          writer.put(0);
        }
      }
    });
  }

  static double reduction_ns(const GemmView& view, const Shape& shape) {
    if (shape.splits == 1) {
      return 0;
    }
    // Parts that are stored in a workspace in the compute type have four bytes or more. Each is
    // written once and read once.
    const double bytes = shape.reduction == kComputeType ? std::max(4.0, view.bytes_per_element)
                                                         : view.bytes_per_element;
    return 2 * shape.splits * view.m * view.n * view.batch * bytes / view.bytes_per_ns;
  }

  static void candidate(const GemmView& view, const Shape& shape, ColumnWriter& writer) {
    const double tiles_m = ceil_div(view.m, shape.tile_m);
    const double tiles_n = ceil_div(view.n, shape.tile_n);
    const double parts = shape.splits * view.batch;
    const double units = tiles_m * tiles_n * parts;
    const double waves = ceil_div(units, view.cores);
    const double use_m = view.m / (tiles_m * shape.tile_m);
    const double use_n = view.n / (tiles_n * shape.tile_n);
    // A cluster starts as a whole, on multiprocessors of its own; the rest stays idle. Padding
    // tiles of the last clusters occupy places, too.
    const double clusters_m = ceil_div(tiles_m, shape.cluster_m);
    const double clusters_n = ceil_div(tiles_n, shape.cluster_n);
    const double clusters = clusters_m * clusters_n * parts;
    const double places = std::max(1.0, floor_of(view.cores / (shape.cluster_m * shape.cluster_n)));
    const double cluster_waves = ceil_div(clusters, places);
    const double split_depth = ceil_div(view.k, shape.splits);
    const double trips = ceil_div(split_depth, shape.step_depth);
    const double critical = cluster_waves * shape.tile_m * shape.tile_n * trips * shape.step_depth;
    const double even = view.m * view.n * view.k * view.batch / view.cores;
    // The tiles of a cluster share their loads, and nothing is loaded beyond the edges: A is loaded
    // once for each column of clusters, B once for each row.
    const double operands = (view.m + view.n) * view.k;
    const double loaded = (view.m * clusters_n + view.n * clusters_m) * view.k;
    const double load_ns = loaded * view.batch * view.bytes_per_element / view.bytes_per_ns;
    const double compute_ns = 2 * critical * view.cores / view.peak_flops_per_ns;
    const double sum_ns = reduction_ns(view, shape);
    // A sum outside of C is a kernel of its own. L2 serves most of the repeated loads: about a
    // quarter of them reach memory, and never less than the operands and the result.
    const double start_ns = shape.splits > 1 && shape.reduction != kInPlace ? 2000 : 1000;
    const double memory_ns = std::max(0.25 * load_ns, view.bytes() / view.bytes_per_ns);
    writer.put(use_m);
    writer.put(use_n);
    writer.put(use_m * use_n);
    writer.put(edge_use(view.m, shape.tile_m * shape.cluster_m));
    writer.put(edge_use(view.n, shape.tile_n * shape.cluster_n));
    writer.put_log2(tiles_m * tiles_n);
    writer.put_log2(units);
    writer.put(waves);
    writer.put(units / (waves * view.cores));
    writer.put(cluster_waves);
    writer.put(clusters / (cluster_waves * places));
    writer.put_log2(split_depth);
    writer.put(trips);
    writer.put_log2(critical / even);
    writer.put_log2(loaded / operands);
    writer.put_log2(load_ns);
    writer.put_log2(1 + sum_ns);
    writer.put_log2(std::max(compute_ns, memory_ns) + sum_ns + start_ns);
    writer.put(std::min(64.0, view.m / shape.tile_m));
    writer.put(std::min(64.0, view.n / shape.tile_n));
    writer.put_log2(tiles_m);
    writer.put_log2(tiles_n);
    writer.put((units - (waves - 1) * view.cores) / view.cores);
  }
};

}  // namespace

const FeatureTable& gemm_cublaslt_table() {
  static const GemmCublasltTable table;
  return table;
}

}  // namespace foretune::features_internal
