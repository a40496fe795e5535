// Our features of Composable Kernel's GEMM: what a tile costs, how the tiles fill the device, how
// much of them is useful. The features that its own models know are in gemm_ck_foreign.cc.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/features/tables/ck_columns.h"
#include "foretune/features/tables/ck_tiling.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kTileColumns{
    of_config("log2_tile_m", "log2 of the rows of a tile"),
    of_config("log2_tile_n", "log2 of the columns of a tile"),
    of_config("log2_tile_k", "log2 of the depth of one step"),
};

constexpr std::array kLabelColumns{
    as_categorical(of_config("pipeline", "number of the pipeline's label")),
    as_categorical(of_config("scheduler", "number of the scheduler's label")),
    as_categorical(of_config("epilogue", "number of the epilogue's label")),
};

constexpr std::array kDerivedColumns{
    of_config("log2_split_k", "log2 of the parts that the depth is cut into"),
    of_config("waves_per_block", "waves of a block"),
    of_config("results_per_wave", "elements of C that a wave holds"),
    of_config("instructions_per_step", "matrix instructions of a wave in one step"),
    of_config("flops_per_loaded_element", "tile_m tile_n / (tile_m + tile_n)"),
    of_config("buffers", "copies of a step in local memory"),
};

constexpr std::array kOwnColumns{
    of_both("missing_pad_m", "1 when tile_m does not divide m and the kernel pads no rows"),
    of_both("missing_pad_n", "1 when tile_n does not divide n and the kernel pads no columns"),
    of_both("missing_pad_k", "1 when tile_k does not divide k and the kernel pads no depth"),
    of_both("load_width_a", "elements that one load of A takes, up to 16 bytes"),
    of_both("load_width_b", "elements that one load of B takes, up to 16 bytes"),
    of_both("store_width_c", "elements that one store of C takes, up to 16 bytes"),
};

// Elements of one access: a power of two that divides the extent, at most 16 bytes, and at most
// what the kernel was built for (0: whatever is possible).
double access_width(double extent, double element_bytes, double built_for) {
  const double most = built_for > 0 ? std::min(built_for, 16 / element_bytes) : 16 / element_bytes;
  double width = 1;
  while (2 * width <= most && std::fmod(extent, 2 * width) == 0) {
    width *= 2;
  }
  return width;
}

constexpr std::array kStreamkColumns{
    as_categorical(of_config("reduction", "number of the reduction's label")),
};

std::vector<FeatureInfo> own_gemm_columns(bool is_streamk) {
  return joined(
      {gemm_problem_columns(), kTileColumns, kCkWaveColumns, kLabelColumns, kCkPaddingColumns,
       kDerivedColumns,
       is_streamk ? std::span<const FeatureInfo>(kStreamkColumns) : std::span<const FeatureInfo>(),
       tiling_columns(), kOwnColumns});
}

class GemmCkTable final : public CkTable {
 public:
  GemmCkTable() : CkTable("gemm-ck", kGemmProblem, ck_gemm_schema(), own_gemm_columns(false)) {}
  // Describes StreamK's kernels, with their reduction.
  struct Streamk {};
  explicit GemmCkTable(Streamk /*operation*/)
      : CkTable("gemm-ck-streamk", kGemmProblem, ck_gemm_streamk_schema(), own_gemm_columns(true)),
        is_streamk_(true) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    gemm_problem_row(GemmView::of(problem, hardware), out);
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    using P = CkGemmParameter;
    const double tile_m = at(words, P::kTileM);
    const double tile_n = at(words, P::kTileN);
    const double tile_k = at(words, P::kTileK);
    const double along_m = at(words, P::kWarpM);
    const double along_n = at(words, P::kWarpN);
    const double along_k = at(words, P::kWarpK);
    ColumnWriter writer(out, 1);
    writer.start(0);
    for (const double size : {tile_m, tile_n, tile_k}) {
      writer.put(std::log2(size));
    }
    for (const P parameter : {P::kWarpM, P::kWarpN, P::kWarpK, P::kWarpTileM, P::kWarpTileN,
                              P::kWarpTileK, P::kPipeline, P::kScheduler, P::kEpilogue, P::kPadM,
                              P::kPadN, P::kPadK, P::kPersistent}) {
      writer.put(at(words, parameter));
    }
    writer.put(std::log2(at(words, P::kSplitK)));
    writer.put(along_m * along_n * along_k);
    writer.put(tile_m * tile_n / (along_m * along_n));
    writer.put(tile_m / (along_m * at(words, P::kWarpTileM)) * tile_n /
               (along_n * at(words, P::kWarpTileN)) * tile_k /
               (along_k * at(words, P::kWarpTileK)));
    writer.put(tile_m * tile_n / (tile_m + tile_n));
    writer.put(ck_buffers(words[static_cast<std::size_t>(P::kPipeline)]));
    if (is_streamk_) {
      writer.put(at(words, P::kReduction));
    }
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const GemmView view = GemmView::of(problem, hardware);
    const GpuView gpu = GpuView::of(hardware);
    const TiledProduct product{
        .m = view.m,
        .n = view.n,
        .k = view.k,
        .batch = view.batch,
        .element_bytes = view.bytes_per_element,
        .operand_bytes = (view.m + view.n) * view.k * view.batch * view.bytes_per_element,
        .result_bytes = view.m * view.n * view.batch * view.bytes_per_element};
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> config) {
      put_tiling(gpu, product, tiling_of(config), writer);
      put_own(view, config, writer);
    });
  }

 private:
  static Tiling tiling_of(std::span<const std::int32_t> words) {
    using P = CkGemmParameter;
    return {.m = at(words, P::kTileM),
            .n = at(words, P::kTileN),
            .k = at(words, P::kTileK),
            .splits = at(words, P::kSplitK),
            .buffers = ck_buffers(words[static_cast<std::size_t>(P::kPipeline)]),
            .waves = at(words, P::kWarpM) * at(words, P::kWarpN) * at(words, P::kWarpK)};
  }

  static void put_own(const GemmView& view, std::span<const std::int32_t> words,
                      ColumnWriter& writer) {
    using P = CkGemmParameter;
    const auto missing = [&](double size, P tile, P pad) {
      return std::fmod(size, at(words, tile)) != 0 && at(words, pad) == 0 ? 1.0 : 0.0;
    };
    writer.put(missing(view.m, P::kTileM, P::kPadM));
    writer.put(missing(view.n, P::kTileN, P::kPadN));
    writer.put(missing(view.k, P::kTileK, P::kPadK));
    const double bytes = view.bytes_per_element;
    writer.put(access_width(view.a_by_columns ? view.m : view.k, bytes, at(words, P::kVecA)));
    writer.put(access_width(view.b_by_columns ? view.k : view.n, bytes, at(words, P::kVecB)));
    writer.put(access_width(view.n, bytes, at(words, P::kVecC)));
  }

  bool is_streamk_ = false;
};

}  // namespace

const FeatureTable& gemm_ck_table() {
  static const GemmCkTable table;
  return table;
}

const FeatureTable& gemm_ck_streamk_table() {
  static const GemmCkTable table{GemmCkTable::Streamk{}};
  return table;
}

}  // namespace foretune::features_internal
